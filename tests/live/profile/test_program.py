# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing perf -- PROGRAM`: effects on the program, both ends, and the recording."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import support

WORK = """
import sys, time
used = getattr(time, "thread_time", time.process_time)
def work(seconds):
    end = used() + seconds
    while used() < end:
        sum(range(500))
"""
# Python is searched repeatedly while a program starts, at most 0.3 s apart: the following work is longer.
LONG = 2.5
PYTHON = "/usr/bin/python3"
USAGE, PERMISSION, NOT_RUNNABLE, NOT_FOUND = 2, 4, 126, 127


def perf(*words, options=("--json",), **more):
    return subprocess.run([support.BINARY, "perf", *options, "--", *words], capture_output=True,
                          timeout=120, check=False, **more)


def recorded(result):
    """The JSON, which is the last line of stderr."""
    return json.loads(result.stderr.decode().splitlines()[-1])


def shares(recording):
    return {row["func"]: row["total_ns"] / recording["weight_ns"]
            for row in recording["functions"]}


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_from_its_start_to_its_end(interpreter):
    result = perf(interpreter.exe, "-c", WORK + "print(input()); work(%g); sys.exit(7)" % LONG,
                  input=b"passed through\n", env=interpreter.env)
    assert result.returncode == 7, result.stderr
    assert result.stdout == b"passed through\n"
    recording = recorded(result)
    assert recording["ended"] == "the process ended"
    assert shares(recording)["work"] > 0.7
    assert 0.98 < recording["weight_ns"] / recording["process_cpu_ns"] < 1.02


def test_no_stop_is_taken_for_the_end():
    result = perf(PYTHON, "-c", WORK + "work(1.5)", options=("--json", "-r", "5000"))
    recording = recorded(result)
    assert recording["ended"] == "the process ended"
    assert recording["weight_ns"] > 0.9 * recording["process_cpu_ns"] > 1.35e9


def test_signal_ends_both():
    result = perf("sh", "-c", "kill -TERM $$")
    assert result.returncode == -signal.SIGTERM


def test_another_program(tmp_path):
    path = str(tmp_path / "run.profile")
    result = perf("sh", "-c", 'x=1; exec "$0" -c "$1"', PYTHON, WORK + "work(%g)" % LONG,
                  options=("-o", path))
    assert result.returncode == 0 and result.stdout == b"", result.stderr
    again = subprocess.run([support.BINARY, path, "perf", "--json"], capture_output=True,
                           check=True)
    recording = json.loads(again.stdout)
    assert recording["command"].startswith(PYTHON) and recording["python"]
    assert shares(recording)["work"] > 0.7


def test_native_across_programs():
    result = perf("sh", "-c", 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; '
                  'exec "$0" -c "$1"', PYTHON, WORK + "work(%g)" % LONG, options=("--json", "--cc"))
    assert result.returncode == 0, result.stderr
    kinds = {row["kind"] for row in recorded(result)["functions"]}
    assert {"python", "native"} <= kinds


def test_no_python(tmp_path):
    loop = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done"
    result = perf("sh", "-c", loop, options=("-o", str(tmp_path / "x.profile")))
    assert result.returncode == 0
    assert b"no Python was found in the program while it was recorded; --cc records" in result.stderr
    native = recorded(perf("sh", "-c", loop, options=("--json", "--cc")))
    assert any(row["kind"] == "native" for row in native["functions"])


def test_ends_at_once(tmp_path):
    path = str(tmp_path / "x.profile")
    for _ in range(20):
        assert perf("true", options=("-o", path)).returncode == 0
        again = subprocess.run([support.BINARY, path, "perf", "--json"], capture_output=True,
                               check=True)
        assert json.loads(again.stdout)["command"] == "true"


@pytest.mark.parametrize("name, code, why", [("no-such-program", NOT_FOUND, "No such file"),
                                             ("/etc/passwd", NOT_RUNNABLE, "denied")])
def test_cannot_be_run(tmp_path, name, code, why):
    result = perf(name, options=("-o", str(tmp_path / "x.profile")))
    assert result.returncode == code
    assert "cannot run '%s'" % name in result.stderr.decode() and why in result.stderr.decode()
    assert not list(tmp_path.iterdir())


def test_usage():
    nothing = subprocess.run([support.BINARY, "perf", "--"], capture_output=True, check=False)
    assert nothing.returncode == USAGE and b"no program after '--'" in nothing.stderr
    both = subprocess.run([support.BINARY, "1", "perf", "--", "true"], capture_output=True,
                          check=False)
    assert both.returncode == USAGE and b"a target, '1', and a program" in both.stderr


def started(program, *options, **more):
    return subprocess.Popen([support.BINARY, "perf", "--json", *options, "--", PYTHON, "-uc",
                             program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **more)


def test_signals_are_passed_on():
    process = started(WORK + """
import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("ready")
work(60)""")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 9
    assert json.loads(err.splitlines()[-1])["ended"] == "the process ended"


def test_interrupt_of_a_background_job_is_passed_on():
    """A script's background jobs ignore SIGINT; the program catches it all the same here."""
    process = started(WORK + """
import signal
signal.signal(signal.SIGINT, lambda *_: sys.exit(9))
print("ready")
work(60)""", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 9
    assert json.loads(err.splitlines()[-1])["ended"] == "the process ended"


def test_environment_and_rights_are_unchanged():
    code = ("import os,signal; print(sorted(os.environ.items()), "
            "sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), os.nice(0), "
            "[(s, signal.getsignal(s)) for s in range(1, 32)], sorted(os.listdir('/proc/self/fd')),"
            "[l for l in open('/proc/self/status') if l[:3] in ('Cap', 'Uid', 'Gid', 'NoN')])")
    alone = subprocess.run([PYTHON, "-c", code], capture_output=True, check=True)
    assert perf(PYTHON, "-c", code).stdout == alone.stdout


def test_nobody_traces_it_when_it_begins():
    code = "print([l for l in open('/proc/self/status') if l.startswith('TracerPid')])"
    for _ in range(5):  # at a rate at which no sample falls into its first second
        assert perf(PYTHON, "-c", code, options=("--json", "-r", "1")).stdout == b"['TracerPid:\\t0\\n']\n"


def test_functions_of_libraries_have_names():
    """They are loaded only after the first reading of the program."""
    loop = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done"
    recording = recorded(perf("sh", "-c", loop, options=("--json", "--cc")))
    nameless = sum(row["self_ns"] for row in recording["functions"]
                   if row["func"].startswith("0x"))
    assert nameless < 0.05 * recording["weight_ns"]


def test_runs_on_when_perf_is_killed():
    process = started(WORK + """
import os
print(os.getpid())
work(0.3)
sys.stdin.readline()
print("goes on")""")
    pid = int(process.stdout.readline())
    process.kill()
    process.wait()
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        assert "TracerPid:\t0" in file.read()
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"goes on\n"
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()


def test_duration_is_over_first():
    process = started(WORK + "print('ready'); work(0.3); sys.stdin.readline()", "-d", "200ms")
    assert process.stdout.readline() == b"ready\n"
    lines = iter(process.stderr.readline, b"")  # a warning may come first: it was short
    assert json.loads(next(line for line in lines if line.startswith(b"{")))["ended"] is None
    assert process.poll() is None
    _, _ = process.communicate(b"\n", timeout=60)
    assert process.returncode == 0


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_setuid_program_is_refused(tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.is_relative_to("/tmp") and folder != pathlib.Path("/tmp"):
            os.chmod(folder, 0o755)
    program = tmp_path / "sleeps"
    program.write_bytes(open("/bin/sleep", "rb").read())
    os.chmod(program, 0o4755)
    binary = tmp_path / "probing"
    binary.write_bytes(open(support.BINARY, "rb").read())
    os.chmod(binary, 0o755)
    begin = time.monotonic()
    result = subprocess.run([binary, "perf", "--cc", "--", program, "1"], capture_output=True,
                            check=False, user=65534, group=65534, extra_groups=[], cwd="/",
                            env={"HOME": str(tmp_path)})
    assert time.monotonic() - begin >= 1
    assert result.returncode == PERMISSION, result.stderr
    assert b"the program runs on; it is not recorded" in result.stderr
