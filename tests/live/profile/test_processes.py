# SPDX-License-Identifier: GPL-3.0-or-later
"""Several processes as one recording: children that start and end, and all that a name matches."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import profiles
import support

PROGRAM = support.HERE / "programs" / "children.py"
INTERPRETERS = support.one_per_version((3, 7))


def started(interpreter, *options):
    return subprocess.run([support.BINARY, "perf", "--subprocesses", *options, "--",
                           interpreter.exe, str(PROGRAM)], capture_output=True, timeout=120,
                          env=interpreter.env, check=False)


def own_name(name):
    """A name that no process of other tests has."""
    return "%s-%d" % (name, os.getpid())


def shares(recording):
    return {row["func"]: row["total_ns"] / recording["weight_ns"]
            for row in recording["functions"]}


@pytest.mark.parametrize("interpreter", INTERPRETERS, ids=repr)
def test_children(interpreter):
    result = started(interpreter, "--json")
    assert result.returncode == 3, result.stderr
    recording = json.loads(result.stderr.splitlines()[-1])
    commands = [process["command"] for process in recording["processes"]]
    assert len(commands) == 4 and commands[0].endswith("children.py")
    assert sum(command.endswith("children.py work") for command in commands) == 1
    assert sum(command.startswith("sh -c") for command in commands) == 1
    used = sum(process["cpu_ns"] or 0 for process in recording["processes"])
    assert 0.95 * used < recording["weight_ns"] < 1.02 * used
    part = shares(recording)
    assert part["work"] > 0.3 and part["forked"] > 0.05
    of_processes = {name: share for name, share in part.items() if name[0].isdigit()}
    assert len(of_processes) >= 3 and abs(sum(of_processes.values()) - 1) < 0.02
    assert {thread["pid"] for thread in recording["threads"]} == \
        {process["pid"] for process in recording["processes"]}


def test_children_in_c_and_a_file(tmp_path):
    path = str(tmp_path / "x.profile")
    result = started(INTERPRETERS[-1], "--cc", "-o", path)
    assert result.returncode == 3, result.stderr
    rows = subprocess.run(
        [support.BINARY, path, "query", "-f", "json",
         "SELECT pid, command, python FROM profile.processes"], capture_output=True, check=True)
    processes = json.loads(rows.stdout)
    shell = next(row for row in processes if row["command"].startswith("sh -c"))
    assert shell["python"] is None and len(processes) == 4
    again = json.loads(subprocess.run([support.BINARY, path, "perf", "--json"],
                                      capture_output=True, check=True).stdout)
    assert [p["pid"] for p in again["processes"]] == [row["pid"] for row in processes]
    stacks = subprocess.run([support.BINARY, path, "perf", "-o", str(tmp_path / "x.collapsed")],
                            capture_output=True, check=True)
    assert stacks.returncode == 0
    lines = (tmp_path / "x.collapsed").read_text().splitlines()
    of_shell = [line for line in lines if ";%d sh -c" % shell["pid"] in ";" + line]
    assert of_shell and all("work" not in line for line in of_shell)


def pids_in_viewers(profile, folder):
    """The processes in the files for Perfetto and Firefox: {pid: names of threads}, each."""
    found = []
    for name in "x.trace.json", "x.gecko.json":
        subprocess.run([support.BINARY, str(profile), "perf", "-m", "wall", "-o", str(folder / name)],
                       stdout=subprocess.DEVNULL, check=True)
        data, names = json.loads((folder / name).read_text()), {}
        for each in data.get("traceEvents", data.get("threads")):
            if each["name"] == "thread_name" or "traceEvents" not in data:
                names.setdefault(each["pid"], set()).add(each["tid"])
        found.append(names)
    return found


def test_all_of_a_name(tmp_path):
    script = tmp_path / "found_by_its_name.py"
    script.write_bytes(profiles.PROGRAM.read_bytes())
    interpreter = INTERPRETERS[-1]
    with support.Target(interpreter, script, 1) as one, support.Target(interpreter, script, 1) as two:
        for target in one, two:
            assert target.line() == "ready"
            target.send(b"go 600\n")
        result = subprocess.run([support.BINARY, "/found_by_its_name/", "perf", "--all", "--json",
                                 "-d", "2s", "-o", str(tmp_path / "x.profile")],
                                capture_output=True, check=True, timeout=60)
        recording = json.loads(result.stdout)
        assert [p["pid"] for p in recording["processes"]] == sorted([one.pid, two.pid])
        assert {thread["pid"] for thread in recording["threads"]} == {one.pid, two.pid}
        assert all(process["cpu_ns"] > 0 for process in recording["processes"])
    expected = {pid: {thread["tid"] for thread in recording["threads"] if thread["pid"] == pid}
                for pid in (one.pid, two.pid)}
    for threads in pids_in_viewers(tmp_path / "x.profile", tmp_path):
        assert threads == expected


def test_usage():
    result = subprocess.run([support.BINARY, "perf", "--all", "--", "true"], capture_output=True,
                            check=False)
    assert result.returncode == 2 and b"--all is not for a program to start" in result.stderr
    for option in "--all", "--subprocesses":
        result = subprocess.run([support.BINARY, str(os.getpid()), "perf", option, "--tid", "1"],
                                capture_output=True, check=False)
        assert result.returncode == 2 and b" is not for --tid" in result.stderr


BRIEF = """
import subprocess, sys
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        subprocess.call(["sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"])
    print("done", flush=True)
"""


def test_children_that_end_at_once(tmp_path):
    """The unseen part is reported, as counted by their parent; it equals the kernel's count."""
    path = str(tmp_path / "x.profile")
    with support.Program([INTERPRETERS[-1].exe, "-c", BRIEF]) as program:
        program.line()
        recording = profiles.Recording(program.pid, "--subprocesses", "-o", path)
        recording.samples()
        before = waited_for(program.pid)
        program.send(b"60\n")
        assert program.line(120) == "done"
        after = waited_for(program.pid)
        recording.interrupt()
        code, out, err = recording.end()
        assert code == 0, err
    result = json.loads(subprocess.run([support.BINARY, path, "perf", "--json"],
                                       capture_output=True, check=True).stdout)
    found = sum(process["cpu_ns"] for process in result["processes"][1:])
    # Each child that was found may have run on for a moment after its last sample.
    assert abs(result["unseen_children_ns"] + found - (after - before)) <= 0.1 * (after - before) + 2e7
    assert ("not seen: " in out) == (result["unseen_children_ns"] * 100 >
                                     result["unseen_children_ns"] + found + result["process_cpu_ns"])


# A process whose program its user may not read is not dumpable: only root may read it.
UNREADABLE = """
import subprocess, sys, time
child = subprocess.Popen([sys.argv[1], "-c", "while :; do :; done"])
while time.process_time() < 1: pass
child.kill()
child.wait()
"""


def left_out(program):
    """Of a program of another user that starts unreadable shells: the path of one, the lines, and all that is printed."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shell = shutil.copy("/bin/sh", folder)
        os.chmod(shell, 0o711)
        result = subprocess.run(
            [support.BINARY, "perf", "--subprocesses", "--", INTERPRETERS[-1].exe, "-c", program, shell],
            capture_output=True, check=False, timeout=120, env=INTERPRETERS[-1].env,
            cwd="/", user=65534, group=65534, extra_groups=[])
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.decode().splitlines() if line.startswith("left out: ")]
    return shell, lines, result


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_child_that_may_not_be_read():
    """It is named once, with its CPU time, which is not reported for others."""
    shell, lines, result = left_out(UNREADABLE)
    assert len(lines) == 1, result.stderr
    assert re.search(shell + " -c .* ended or could not be read, with .*s on a processor$", lines[0])
    assert b"of threads that ended" not in result.stderr


MANY_UNREADABLE = """
import subprocess, sys, time
children = [subprocess.Popen([sys.argv[1], "-c", "read line"], stdin=subprocess.PIPE) for _ in range(12)]
while time.process_time() < 1: pass
for child in children:
    child.communicate(b"\\n")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_many_children_that_may_not_be_read():
    """Ten of them are named."""
    shell, lines, result = left_out(MANY_UNREADABLE)
    assert len(lines) == 11 and all(shell in line for line in lines[:-1]), result.stderr
    assert re.search(r"^left out: 2 more, with .*s on a processor; --json has them all$", lines[-1]), lines


EARLIER = """
import subprocess, sys
code = "import time\\nwhile time.process_time() < 1: pass\\nprint('burned', flush=True)\\ninput()"
child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
input()
child.communicate(b"\\n")
print("done", flush=True)
input()
"""


@pytest.mark.parametrize("ends", [False, True], ids=["goes-on", "ends"])
def test_what_a_child_has_used_before(ends):
    """It is no part of the recording, and nothing that was not seen."""
    with support.Program([INTERPRETERS[-1].exe, "-c", EARLIER]) as program:
        program.line()
        recording = profiles.Recording(program.pid, "--subprocesses", "--json")
        recording.samples()
        if ends:
            program.send(b"\n")
            assert program.line(60) == "done"
        recording.interrupt()
        result = recording.result()
    assert result["unseen_children_ns"] < 5e8
    assert len(result["processes"]) <= 2 and all(each["cpu_ns"] < 5e8 for each in result["processes"]), result


def waited_for(pid):
    """Nanoseconds of all children that ended."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        numbers = file.read().rpartition(")")[2].split()
    return (int(numbers[13]) + int(numbers[14])) * 10000000


# Forks a child that has its command line, and ends on request, and so does the child, once it has used some
# time.
FAMILY = """
import os, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
here, there = os.pipe()
child = os.fork()
if not child:
    os.read(here, 1)
    burn(1)
    os._exit(0)
print("ready", flush=True)
input()
os.write(there, b"x")
os.waitpid(child, 0)
print("done", flush=True)
input()
"""


def test_a_child_that_has_the_name_too():
    """Its time is counted once: the row of the process has it, except for the part after its last sample."""
    with support.Program([INTERPRETERS[-1].exe, "-c", FAMILY, own_name("a-name-for-both")]) as program:
        program.line()
        recording = subprocess.Popen(
            [support.BINARY, "/%s$/" % own_name("a-name-for-both"), "perf", "--all", "--subprocesses", "--json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        profiles.samples(recording)
        program.send(b"\n")
        assert program.line(60) == "done"
        recording.send_signal(signal.SIGINT)
        out, err = recording.communicate(timeout=60)
    assert recording.returncode == 0, err
    result = json.loads(out)
    assert len(result["processes"]) == 2, result["processes"]
    used = result["processes"][1]["cpu_ns"]
    assert used > 0 and used + result["unseen_children_ns"] < 1.4e9, (used, result["unseen_children_ns"])


# Its child has waited for a child of its own, which has used a second, before it is recorded.
EARLIER_STILL = """
import subprocess, sys
child = ("import subprocess, sys\\n"
         "subprocess.call([sys.executable, '-c', 'import time\\\\nwhile time.process_time() < 1: pass'])\\n"
         "print('burned', flush=True)\\ninput()")
child = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert child.stdout.readline() == b"burned\\n"
print("ready", flush=True)
input()
child.communicate(b"\\n")
print("done", flush=True)
input()
"""


def test_what_children_of_a_child_have_used_before():
    with support.Program([INTERPRETERS[-1].exe, "-c", EARLIER_STILL]) as program:
        program.line()
        recording = profiles.Recording(program.pid, "--subprocesses", "--json")
        recording.samples()
        program.send(b"\n")
        assert program.line(60) == "done"
        recording.interrupt()
        result = recording.result()
    assert result["unseen_children_ns"] < 5e8, result["unseen_children_ns"]


BUSY_CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print('runs', flush=True)\\nwhile True: pass"], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
try:
    input()
finally:
    child.kill()
    child.wait()
"""


def test_a_child_that_a_debugger_has():
    """It is reported as unreadable, and does not end the recording of the others."""
    with support.Program([INTERPRETERS[-1].exe, "-c", BUSY_CHILD]) as program:
        child = int(program.line())
        with profiles.tracer_of(child):
            recording = profiles.Recording(program.pid, "--subprocesses", "--json", "-d", "1s")
            code, out, err = recording.end()
        program.send(b"\n")
        program.wait()
    assert code == 0, err
    result = json.loads(out)
    weights = {row["func"]: row["self_ns"] for row in result["functions"]}
    traced = weights["<unreadable: another tracer>"]
    assert traced > 0 and traced > 0.9 * result["weight_ns"], weights


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_one_of_all_is_of_another_user():
    """It is left out, with a warning, and the other one is recorded."""
    interpreter, user = INTERPRETERS[-1], {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
    words = [interpreter.exe, "-c", "print('ready', flush=True)\nwhile True: pass", own_name("named-by-two-users")]
    with support.Program(words, env=interpreter.env) as other, \
            support.Program(words, env=interpreter.env, **user) as own:
        assert other.line() == own.line() == "ready"
        result = subprocess.run(
            [support.BINARY, "/%s$/" % own_name("named-by-two-users"), "perf", "--all", "--json", "-d", "500ms"],
            capture_output=True, check=False, env=interpreter.env, **user)
    assert result.returncode == 0, result.stderr
    assert [process["pid"] for process in json.loads(result.stdout)["processes"]] == [own.pid]
    assert b"warning: " in result.stderr and b"%d" % other.pid in result.stderr, result.stderr


def test_c_functions_of_all(tmp_path):
    """Each process has its libraries at other places; the functions of each have their names."""
    words = [INTERPRETERS[-1].exe, "-c", "print('ready', flush=True)\nwhile True: sum(range(1000))", own_name("named-with-c")]
    stacks = tmp_path / "x.collapsed"
    with support.Program(words, env=INTERPRETERS[-1].env) as one, \
            support.Program(words, env=INTERPRETERS[-1].env) as two:
        assert one.line() == two.line() == "ready"
        subprocess.run([support.BINARY, "/%s$/" % own_name("named-with-c"), "perf", "--all", "--cc", "-d", "2s", "-o", stacks],
                       stdout=subprocess.DEVNULL, check=True, timeout=120)
    lines = stacks.read_text().splitlines()
    for pid in one.pid, two.pid:
        own = [line for line in lines if line.startswith("%d " % pid)]
        assert any(";PyEval_EvalCode" in line for line in own), own
