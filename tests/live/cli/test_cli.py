# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: helps, forms of targets, exit codes, completion, man page, colours and widths, JSON."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

import environment
import support
from commands import COMMANDS

ALIASES = {"debug": ["dbg", "d"], "backtrace": ["bt", "b"], "list": ["ls", "l"], "query": ["q"],
           "tables": ["tbl"], "performance": ["perf", "p"], "flamegraph": ["flame", "fg"],
           "inject": ["in", "i"]}
OK, FAILED, USAGE, UNSUPPORTED, PERMISSION, TIMEOUT, NO_PROCESS = range(7)
DOCS = support.ROOT / "docs"


def fails(result, code, *words):
    """An error: nothing on stdout, one message on stderr that names the cause, and its exit code."""
    assert result.code == code and not result.out, result
    assert result.err.startswith("probing: "), result
    for word in words:
        assert word in result.err, result
    return result


def dumped(result):
    assert result.code == OK, result
    return json.loads(result.out)


# Help

def options_of(probing, command):
    """The long options in the help of a command, with their letters."""
    text = probing(command, "--help").out if command else probing("--help").out
    return re.findall(r"^  (?:-(\w), |    )--([\w-]+)", text, re.M)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_the_same_everywhere(probing, command):
    text = probing(command, "--help")
    assert text.code == OK and not text.err
    for words in (["help", command], [command, "-h"], ["--help", command], ["-h", command],
                  ["4242", command, "--help"],
                  *[[alias, "--help"] for alias in ALIASES.get(command, [])]):
        again = probing(*words)
        assert (again.code, again.out) == (OK, text.out), words
    for line in text.out.splitlines():
        assert len(line) <= 100


def test_help_lists_what_there_is(probing):
    text = probing("--help")
    assert text.code == OK and not text.err
    assert probing("help").out == probing("-h").out == text.out
    listed = re.findall(r"^  (\w+)(?:, |  )", text.out.split("Commands:")[1].split("\n\n")[0], re.M)
    assert listed == COMMANDS
    for command, aliases in ALIASES.items():
        assert "  %s  " % ", ".join([command] + aliases) in text.out


# A served process ends by a signal only.
@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "serve"])
def test_help_lists_what_is_taken(probing, command):
    """Options about targets are listed where they are taken, and refused where they are not."""
    listed = {name for _, name in options_of(probing, command)}
    nobody = 2 ** 22 + 1  # no process has this pid
    for option, value in (("exe", "x"), ("sysroot", "x"), ("library-path", "x"),
                          ("token-file", "x"), ("pid", nobody), ("target", nobody)):
        # A server would keep running: the next word is refused last.
        refused = probing("--" + option, value, command, *["--no-such-option"] * (command == "serve"))
        if option not in listed:
            fails(refused, USAGE, "'%s' takes no " % command)
        else:
            assert "takes no '--" not in refused.err, (option, refused)
    assert {"list": {"target", "token-file"}, "tables": {"target", "token-file"}, "help": set(),
            "ring": set(), "launch": set(), "run": set(), "check": {"pid", "target", "token-file"},
            "server": {"pid", "target", "token-file"},
            "watch": {"pid", "target", "token-file"}, "crashes": set(), "node": set(),
            "export": {"target", "token-file", "pid"}, "completion": set(), "diff": set()}.get(command, {"exe", "pid", "target", "token-file"}) == \
        listed & {"exe", "pid", "target", "token-file"}


def test_no_words_is_a_usage_error(probing):
    nothing = probing()
    assert nothing.code == USAGE and not nothing.out
    assert nothing.err == probing("--help").out


def test_version(probing):
    for option in ("--version", "-V"):
        result = probing(option)
        assert result.code == OK and not result.err, result
        first, built, *features = result.out.splitlines()
        assert re.fullmatch(r"probing \d+\.\d+\.\d+", first)
        assert re.fullmatch(r"built for (x86_64|aarch64) by (gcc|clang) .*, glibc \d\.\d+; this is glibc \d\.\d+", built)
        named = {name for line in features for name in re.sub("^.*: ", "", line).split(", ")}
        assert named == {"agent", "page", "ebpf", "clickhouse"} and features[0].startswith("features: agent"), features


def test_help_is_instant():
    """No slower than the start of a process: compared with a program that does nothing."""
    fastest = {(support.BINARY, "--help"): 60, ("/bin/true",): 60}
    for number in range(300):  # beside others, most of them wait for a processor
        for command, best in fastest.items():
            start = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            fastest[command] = min(best, time.perf_counter() - start)
        of_help, of_nothing = fastest.values()
        if number > 30 and of_help - of_nothing < 0.002:
            break
    assert of_help - of_nothing < 0.002


# Usage errors

@pytest.mark.parametrize("words, says", [
    (["debuk"], "did you mean 'debug'?"),
    (["LIST"], "did you mean 'list'?"),
    (["version"], "'probing --version' shows it"),
    (["versionx"], "'probing --version' shows it"),
    (["man"], "'probing --man' prints the manual page"),
    (["4242", "backtrce"], "did you mean 'backtrace'?"),
    (["nonsense", "--dump"], "'probing --help' lists the commands"),
    (["help", "lst"], "did you mean 'list'?"),
    (["--sysroot", "/"], "no command given"),
    (["debug", "--dump"], "no target given"),
    (["4242", "debug", "--dmup"], "did you mean '--dump'?"),
    (["4242", "debug", "-d", "-Z"], "has no option '-Z'"),
    (["4242", "debug", "--dump=yes"], "takes no value"),
    (["4242", "backtrace", "--tid"], "needs a value"),
    (["4242", "backtrace", "--tid", "x"], "needs a number"),
    (["4242", "backtrace", "--tid=0"], "needs a number"),
    (["backtrace", "-p"], "needs a value"),
    (["backtrace", "--pid", "99999999999"], "needs a number"),
    (["99999999999", "backtrace"], "not a process id"),
    (["1", "backtrace", "-p", "2"], "two targets"),
    (["1", "backtrace", "2"], "two targets"),
    (["1", "backtrace", "--all", "--tid", "3"], "exclude each other"),
    (["1", "backtrace", "--freeze", "--nonblocking"], "exclude each other"),
    (["1", "backtrace", "--subprocesses", "--tid", "3"], "exclude each other"),
    (["--exe", "/bin/true", "1", "backtrace"], "--exe is for core files"),
    (["list", "4242"], "unexpected word"),
    (["-p", "4242", "list"], "takes no target"),
    (["completion"], "no shell"),
    (["completion", "tcsh"], "tcsh"),
    (["completion", "bash", "zsh"], "unexpected word"),
    (["/[/", "backtrace"], "bad regular expression"),
])
def test_usage_errors(probing, words, says):
    fails(probing(*words), USAGE, says)


def test_bad_log_filter(probing):
    fails(probing("1", "backtrace", env={"PROBING_LOG": "nonsense"}), USAGE, "nonsense")


# Unreadable targets

def free_pid():
    """A pid that no process can have: the kernel's are below."""
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        return int(file.read())


def test_no_process(probing):
    fails(probing(free_pid(), "backtrace"), NO_PROCESS, "No such process")
    fails(probing("-t", "no such command line", "backtrace"), NO_PROCESS, "probing list")
    fails(probing("/no such command line/", "backtrace"), NO_PROCESS, "probing list")


def test_no_thread(probing, target):
    process = target("sleeper.py")
    fails(probing(process.pid, "backtrace", "--tid", free_pid()), NO_PROCESS)


def test_not_python(probing):
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            fails(probing(process.pid, "backtrace"), UNSUPPORTED)
        finally:
            process.kill()


def test_zombie(probing):
    with subprocess.Popen(["/bin/true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        fails(probing(process.pid, "backtrace"), UNSUPPORTED)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(sys.version_info < (3, 9), reason="subprocess has no user= before 3.9")
def test_permission(probing, target):
    process = target("sleeper.py")
    result = probing(process.pid, "backtrace", user=65534, group=65534, extra_groups=[], cwd="/")
    fails(result, PERMISSION, "\n  ")


@pytest.mark.parametrize("form", ["localhost:9922", "10.0.0.3:29500", "[::1]:80"])
def test_remote_targets(probing, form):
    fails(probing(form, "backtrace"), PERMISSION, "a served process needs its token")


def test_socket(probing, target, tmp_path):
    """The process that listens there, as the agent does."""
    import socket
    path = str(tmp_path / "agent.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        fails(probing("-t", path, "backtrace"), NO_PROCESS, "nobody listens at")
        listener.listen()
        result = probing("-t", path, "list")
        fails(result, USAGE, "takes no target")
    process = target("evaluated.py", "idle")
    assert probing(process.pid, "inject").code == OK
    path = json.loads(probing(process.pid, "agent", "status", "--json").out)["socket"]
    assert probing("-t", path, "eval", "numbers").out == "[1, 2, 3]\n"


def test_other_files(probing, tmp_path):
    path = tmp_path / "notes"
    path.write_text("no core")
    fails(probing(path, "backtrace"), UNSUPPORTED, "neither a core file, a snapshot nor a recording")


def test_full_disk(probing, target):
    process = target("sleeper.py")
    with open("/dev/full", "w", encoding="ascii") as full:
        for words in (["--help"], ["tables"], [process.pid, "backtrace"],
                      [process.pid, "backtrace", "--json"], ["list"], ["list", "--json"]):
            result = probing(*words, stdout=full)
            assert result.code == FAILED and "No space left on device" in result.err, result


# Forms of targets

def test_target_forms(probing, target):
    mark = "mark-%d" % os.getpid()
    process = target("sleeper.py", mark)
    pid, env = process.pid, {"PROBING_TARGET": str(process.pid)}
    forms = [
        (["-p", pid, "backtrace"], {}), (["--pid", pid, "bt"], {}), (["--pid=%d" % pid, "b"], {}),
        (["-p%d" % pid, "backtrace"], {}), (["backtrace", "-p", pid], {}),
        (["-t", pid, "backtrace"], {}), (["--target", pid, "backtrace"], {}),
        (["backtrace", "--target=%d" % pid], {}), ([pid, "backtrace"], {}),
        (["backtrace", pid], {}), (["backtrace"], env), (["-p", pid, "bt"], {"PROBING_TARGET": "1"}),
        ([mark, "backtrace"], {}), (["-t", mark, "backtrace"], {}),
        (["/sleeper\\.py mark-%d$/" % os.getpid(), "backtrace"], {}),
        (["-t", "/^\\S*python.*%s/" % mark, "backtrace"], {}),
        (["backtrace"], {"PROBING_TARGET": mark}),
        (["--all", pid, "backtrace"], {}), (["debug", "-d", pid], {}), ([pid, "d", "--dump"], {}),
        (["--dump", pid, "debug"], {}), (["-d", "-p", pid, "dbg"], {}),
    ]
    for words, variables in forms:
        found = dumped(probing(*words, "--json", env=variables))
        assert found["target"]["pid"] == pid, words
        assert dumped(probing("--json", *words, env=variables))["target"]["pid"] == pid, words


def test_name_of_a_script_in_this_folder(probing, target, tmp_path):
    """A file that is no core is still a part of a command line."""
    script = tmp_path / "sleeper.py"
    shutil.copy(support.HERE / "programs" / "sleeper.py", script)
    process = target(script)
    for name in ("/%s.sleeper.py/" % tmp_path.name, script):
        found = probing("-t", name, "bt", "--json", cwd=tmp_path)
        assert dumped(found)["target"]["pid"] == process.pid


def test_ambiguous(probing, target):
    mark = "twins-%d" % os.getpid()
    pids = sorted(target("sleeper.py", mark, name).pid for name in ("one", "two"))
    for form in (mark, "/tw[i]ns-%d/" % os.getpid()):
        result = fails(probing("-t", form, "backtrace"), USAGE, "ambiguous", "2 Python processes")
        listed = re.findall(r"^\s+(\d+)  .*sleeper\.py'? %s (one|two)$" % mark, result.err, re.M)
        assert sorted(int(pid) for pid, _ in listed) == pids, result
    for form in (mark + " one", "/%s one$/" % mark):
        assert probing("-t", form, "backtrace").code == OK


def test_device(probing, newest):
    """It is no part of a command line, though one has its path."""
    with support.Program([newest.exe, "-c", "print('ready', flush=True); open('/dev/null'); input()"]) as process:
        assert process.line() == "ready"
        for words in (("dump", "/dev/null"), ("/dev/null", "why")):
            fails(probing(*words), UNSUPPORTED, "'/dev/null' is no file that can be read")


def test_an_expression_and_a_line_that_is_too_long_for_it(probing, target, newest):
    """Another process has it: it is left out and named, and the others are found."""
    mark = "beside-%d" % os.getpid()
    process = target("sleeper.py", mark)
    long = "print('ready', flush=True); input()  # %s" % ("python sleep 0123456789 " * 3000)
    with support.Program([newest.exe, "-c", long]) as other:
        assert other.line() == "ready"
        result = probing("-t", "/p.*e.*e.*%s/" % mark, "backtrace", "--json")
        assert dumped(result)["target"]["pid"] == process.pid
        assert "process %d, with a command line of " % other.pid in result.err and "is left out: " in result.err
        fails(probing("-t", "/p.*e.*e.*no-%s/" % mark, "backtrace"), NO_PROCESS, "is known to match", "simpler")


def test_long_command_lines(probing, newest):
    """A program behind -c is told by its beginning; in JSON it is whole, and its end finds it, too."""
    mark = "end-%d" % os.getpid()
    program = "print('ready', flush=True); input()  # é%s %s" % ("x" * 4000, mark)
    with support.Program([newest.exe, "-c", program, "last"]) as process:
        assert process.line() == "ready"
        text = probing(mark, "dump").out
        assert re.match(r"%d  \S+ -c 'print.*xxx…\+38\d\d' last\n" % process.pid, text), text
        assert dumped(probing(mark, "bt", "--json"))["target"]["argv"][2:] == [program, "last"]


# Looks

def settled_dump(probing, process):
    """The dump of threads.py once all its threads came to where they stay."""
    deadline = time.monotonic() + 60
    while True:
        result = probing(process.pid, "debug", "--dump")
        assert result.code == OK and not result.err, result
        if " recvfrom: " in result.out and "\n3 threads " in result.out:
            return result
        assert time.monotonic() < deadline, result


def test_sample(probing, target):
    process = target("threads.py")
    result = settled_dump(probing, process)
    head, summary, empty, *rest = result.out.splitlines()
    assert head.startswith("%d  " % process.pid) and head.rstrip("'").endswith("threads.py")
    assert re.fullmatch(r"Python 3\.\d+\.\w+\+? · 5 threads · GIL .* · .*paused.*", summary), summary
    assert empty == ""
    text = "\n".join(rest)
    assert re.search(r"^\d+ worker +running", text, re.M), text
    assert re.search(r"^    rec_busy +threads\.py:\d+   \(20 calls deep\)$", text, re.M), text
    assert re.search(r"^%d MainThread +idle .*in \w+: .*socket" % process.pid, text, re.M), text
    folded = re.search(r"^3 threads +idle in \S+: .*?  +([\d, –]+)$", text, re.M)
    ends = [int(tid) for tid in re.findall(r"\d+", folded.group(1))]
    waiters = [tid for tid in support.thread_ids(process.pid)
               if not re.search(r"^%d " % tid, text, re.M)]
    assert len(waiters) == 3 and set(ends) <= set(waiters), (waiters, text)
    assert (ends[0], ends[-1]) == (waiters[0], waiters[-1]), text
    columns = {line.index(line.split()[1]) for line in rest
               if line.startswith("    ") and ".py:" in line and len(line.split()[0]) < 24}
    assert len(columns) == 1, text


def test_no_fold(probing, target):
    process = target("threads.py")
    settled_dump(probing, process)
    text = probing(process.pid, "debug", "--dump", "--no-fold").out
    assert len(re.findall(r"^    rec_busy ", text, re.M)) == 21
    assert len(re.findall(r"^\d+ waiter-\d ", text, re.M)) == 3


def test_full_paths(probing, target):
    process = target("threads.py")
    path = str(support.ROOT / "tests" / "live" / "programs" / "threads.py")
    assert path + ":" in probing(process.pid, "bt", "--full-paths").out
    assert "/threads.py:" not in probing(process.pid, "bt").out
    frames = dumped(probing(process.pid, "bt", "--json"))["threads"][0]["frames"]
    files = {frame["file"] for frame in frames}
    assert path in files and all(os.path.isabs(file) for file in files)


def test_locals(probing, target):
    process = target("sleeper.py")
    result = probing(process.pid, "backtrace", "--locals")
    assert re.search(r"^        argument text +=", result.out, re.M), result
    assert re.search(r"^        local    number += 42$", result.out, re.M), result
    assert re.search(r"^        free     shared += 'cell'$", result.out, re.M), result
    assert re.search(r"^        cell     shared += 'cell'$", result.out, re.M), result
    assert "\x1b" not in result.out


def test_source(probing, target, newest):
    process = target("sleeper.py")
    result = probing(process.pid, "backtrace", "--source")
    lines = result.out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() == "return sleep()")
    if newest.version >= (3, 11):
        assert lines[at + 1] == lines[at].replace("return sleep()", "       ^^^^^^^"), result


def test_hostile_names(probing, target):
    process = target("hostile.py", "\x1b[2J", "\u202e")
    for words in (["debug", "--dump", "--locals", "--native"], ["debug", "-d", "--json"],
                  ["backtrace", "-p", "1", "\x1b[2J"], ["backtrace", "--\x1b"],
                  ["-t", "\x1b[2J\x07", "backtrace"]):
        command = [process.pid, *words] if "-t" not in words else words
        result = probing(*command)
        for text in (result.out, result.err):
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), result


def test_colour_only_in_terminals(probing, probing_in_terminal, target):
    process = target("threads.py")
    settled_dump(probing, process)
    words = [process.pid, "debug", "--dump"]
    assert "\x1b[" not in probing(*words, env={"TERM": "xterm"}).out
    shown = probing_in_terminal(*words)
    assert "\x1b[32mrunning\x1b[0m" in shown
    assert "\x1b[" not in probing_in_terminal(*words, env={"NO_COLOR": "1"})
    assert "\x1b[" not in probing_in_terminal(*words, env={"TERM": "dumb"})
    assert "\x1b[" in probing_in_terminal(*words, env={"NO_COLOR": ""})
    assert "\x1b[" not in probing_in_terminal(*words, "--json")


def test_logging(probing, target):
    process = target("sleeper.py")
    words = [process.pid, "bt", "--json"]
    quiet = probing(*words)
    assert quiet.code == OK and not quiet.err, quiet
    for logged in (probing("-v", *words), probing("-vvv", *words), probing(*words, "--verbose"),
                   probing(*words, env={"PROBING_LOG": "3"})):
        assert logged.code == OK and logged.err, logged
        assert all(re.match(r"\[\w+\] |    ", line) for line in logged.err.splitlines()), logged
        assert json.loads(logged.out)["target"] == json.loads(quiet.out)["target"]
    domain = re.match(r"\[(\w+)\]", probing("-vvv", *words).err).group(1)
    only = probing(*words, env={"PROBING_LOG": domain + "=3"}).err
    assert only and {line.split("]")[0] for line in only.splitlines() if line.startswith("[")} == \
        {"[" + domain}


# JSON

@pytest.fixture(scope="session")
def schema():
    jsonschema = pytest.importorskip("jsonschema")
    with open(DOCS / "dump.schema.json", encoding="utf-8") as file:
        text = json.load(file)
    jsonschema.Draft7Validator.check_schema(text)
    return jsonschema.Draft7Validator(text)


def test_json_keeps_to_the_schema(probing, target, interpreter, schema):
    process = target("threads.py", interpreter=interpreter)
    for options in ([], ["--locals", "--source"], ["--native"], ["--nonblocking"], ["--freeze"]):
        dump = dumped(probing(process.pid, "debug", "--dump", "--json", *options))
        schema.validate(dump)
        python = dump["target"]["python"]
        assert python["version"].rstrip("+").startswith(interpreter.full_version.rstrip("+"))
        assert python["free_threaded"] == interpreter.free_threaded
        assert python["debug_build"] == interpreter.debug_build
        assert dump["threads"][0]["tid"] == process.pid
        assert len(dump["threads"]) == 5


def test_schema_is_strict(probing, target, schema):
    """Each member is required and no other is allowed."""
    process = target("sleeper.py")
    dump = dumped(probing(process.pid, "bt", "--json", "--locals"))
    schema.validate(dump)
    for place in (dump, dump["target"], dump["target"]["python"], dump["threads"][0],
                  dump["threads"][0]["frames"][0], dump["threads"][0]["frames"][0]["locals"][0]):
        for name in list(place):
            if name == "locals":
                continue
            value = place.pop(name)
            assert not schema.is_valid(dump), name
            place[name] = value
        place["more"] = 1
        assert not schema.is_valid(dump)
        del place["more"]
    assert schema.is_valid(dump)


def test_documented_json(schema):
    text = (DOCS / "json.md").read_text(encoding="utf-8")
    examples = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.S)]
    assert len(examples) == 2
    schema.validate(examples[0])
    examples[1]["dumps"].append(examples[0])
    schema.validate(examples[1])
    for definition in schema.schema["definitions"].values():
        for name in definition["properties"]:
            assert "`%s`" % name in text or ".%s`" % name in text or '"%s"' % name in text, name


# Children

def test_subprocesses(probing, target, schema):
    process = target("family.py")
    child, shell = (int(pid) for pid in process.ready)
    result = probing(process.pid, "debug", "--dump", "--subprocesses")
    assert result.code == OK, result
    heads = [int(pid) for pid in re.findall(r"^(\d+)  ", result.out, re.M)]
    assert heads[0] == process.pid and child in heads and len(heads) == 3
    assert shell not in heads and "child %d (" % shell in result.err, result

    tree = dumped(probing(process.pid, "debug", "--dump", "--subprocesses", "--json"))
    schema.validate(tree)
    assert [dump["target"]["pid"] for dump in tree["dumps"]] == heads
    assert [skipped["pid"] for skipped in tree["skipped"]] == [shell]


def test_subprocesses_of_a_shell(probing, newest, schema):
    """The parent need not be a Python: it is named, and its children are dumped."""
    leaf = "print('ready', flush=True); import sys; sys.stdin.read()"
    with support.Program(["/bin/sh", "-c", '"$0" -c "$1"; :', newest.exe, leaf],
                         env=newest.env) as shell:
        assert shell.line() == "ready"
        result = probing(shell.pid, "debug", "--dump", "--subprocesses")
        assert result.code == OK, result
        head, = re.findall(r"^(\d+)  ", result.out, re.M)
        assert "<module>" in result.out and not result.out.startswith("\n"), result
        assert re.search(r"warning: process %d \(/bin/sh -c .*\) is skipped: "
                         "this is not a Python process" % shell.pid, result.err), result

        tree = dumped(probing(shell.pid, "debug", "--dump", "--subprocesses", "--json"))
        schema.validate(tree)
        assert [dump["target"]["pid"] for dump in tree["dumps"]] == [int(head)]
        assert [skipped["pid"] for skipped in tree["skipped"]] == [shell.pid]

        alone = probing(shell.pid, "debug", "--dump")
        assert alone.code == UNSUPPORTED and not alone.out, alone
        assert re.search(r"process %d \(/bin/sh -c .*\): this is not a Python process"
                         % shell.pid, alone.err), alone
        assert "'probing %d dump --subprocesses'" % shell.pid in alone.err, alone
        code = probing(shell.pid, "eval", "1")
        assert "'probing %d dump --subprocesses'" % shell.pid in code.err, code


def test_subprocesses_without_any_python(probing):
    with support.Program(["/bin/sh", "-c", "sleep 100 & echo ready; read x; kill $!"]) as shell:
        assert shell.line() == "ready"
        result = probing(shell.pid, "debug", "--dump", "--subprocesses")
        assert result.code == UNSUPPORTED and not result.out, result
        assert re.search(r"process %d \(.*\): neither it nor any of its children is a Python "
                         "that can be read" % shell.pid, result.err), result
        # Killed before, it would leave the other one, which has its stdout too.
        shell.send(b"\n")
        shell.wait()


# list

def test_list(probing, target):
    process = target("threads.py", env={"RANK": "3", "LOCAL_RANK": "1"})
    shown = probing("list")
    assert shown.code == OK and not shown.err, shown
    head, *lines = shown.out.splitlines()
    # Others of this machine may be served just now.
    assert head.replace("SERVED AT", "").replace("PROGRAM", "").split() == [
        "PID", "PYTHON", "THREADS", "AGENT", "RANK",
        "COMMAND"]
    line = next(line for line in lines if line.split()[0] == str(process.pid))
    assert re.fullmatch(r" *\d+  3\.\d+(\.\d+\w*)?  +5  - +(- +){0,2}3  .*threads\.py'?", line), line
    for words in (["ls", "--json"], ["l", "--json"]):
        found = next(p for p in dumped(probing(*words)) if p["pid"] == process.pid)
        assert (found["threads"], found["rank"], found["local_rank"]) == (5, 3, 1)
        assert found["ppid"] == os.getpid() and found["unreadable"] is None
        assert found["argv"][-1].endswith("threads.py")
        assert "python_parent" not in found


@pytest.mark.parametrize("interpreter", support.one_per_version(), ids=repr)
def test_list_tells_the_patch_release(probing, target, interpreter):
    process = target("sleeper.py", interpreter=interpreter)
    found = next(p for p in dumped(probing("list", "--json")) if p["pid"] == process.pid)
    assert found["version"] == interpreter.full_version, found


def test_list_leaves_out_who_reads_a_libpython(probing, tmp_path):
    """A tool that has a libpython mapped to read its symbols, as probing has, is no Python."""
    library = tmp_path / "libpython3.12.so.1.0"
    library.write_bytes(b"\0" * 4096)
    with support.Program([environment.build("maps_file.c", "maps_file"), library]) as reader:
        assert reader.line() == "ready"
        with open("/proc/%d/maps" % reader.pid, encoding="utf-8") as maps:
            assert str(library) in maps.read()
        assert reader.pid not in [p["pid"] for p in dumped(probing("list", "--json"))]


def test_threads_of_the_agent(probing, target):
    """The list does not count them, and dumps leave out those that have ended."""
    process = target("threads.py")
    before = next(p for p in dumped(probing("list", "--json")) if p["pid"] == process.pid)
    for _ in range(support.count(10, 200)):
        assert probing(process.pid, "eval", "1 + 1").code == OK
        for thread in support.dump(process.pid)["threads"]:
            # A thread that ends right then has no name any more.
            assert not ((thread["os_name"] or "").startswith("probing-") and thread["error"]), thread
    after = next(p for p in dumped(probing("list", "--json")) if p["pid"] == process.pid)
    assert after["agent"] == "running" and len(support.thread_ids(process.pid)) > before["threads"]
    assert after["threads"] == before["threads"] == 5


def test_a_first_thread_that_has_ended(probing, newest):
    with support.Program([newest.exe, environment.PROGRAMS / "leader_ends.py"],
                         env=newest.env) as process:
        assert process.line() == "ready"
        environment.wait_until(
            lambda: support.thread_status(process.pid)["State"].startswith("Z"), 60)
        result = probing(process.pid, "debug", "--dump")
        assert result.code == OK and \
            "its thread has ended, and the process goes on" in result.out, result
        assert "leader_ends.py:19" in result.out and "rest" in result.out


def test_snapshot_of_one_thread(probing, target, tmp_path):
    process = target("sleeper.py")
    path = tmp_path / "one.snapshot"
    result = probing(process.pid, "snapshot", "-o", path)
    assert result.out == "%s: 1 thread of %d\n" % (path, process.pid), result


def test_list_tree(probing, target, newest):
    process = target("family.py")
    child = int(process.ready[0])
    text = probing("list", "--tree").out
    at = {int(line.split()[0]): line for line in text.splitlines()[1:]}
    columns = {pid: at[pid].index(newest.exe) for pid in (process.pid, child)}
    assert columns[child] == columns[process.pid] + len("└─ "), text
    assert at[child][:columns[child]].endswith("└─ ")
    rows = {row["pid"]: row for row in dumped(probing("list", "-t", "--json"))}
    assert rows[child]["python_parent"] == process.pid
    # The shell between is passed over.
    assert [row["python_parent"] for row in rows.values()].count(process.pid) == 2
    order = list(rows)
    assert order.index(child) > order.index(process.pid)


# snapshot

def test_snapshot(probing, target, tmp_path):
    process = target("sleeper.py")
    file = tmp_path / "one.snapshot"
    written = probing(process.pid, "snapshot", "-o", file)
    assert written.code == OK and written.out.startswith(str(file)), written
    for options in ([], ["--locals"], ["--source"], ["--native", "--locals"]):
        live = dumped(probing(process.pid, "bt", "--json", *options))
        process_there = dumped(probing(file, "bt", "--json", *options))
        assert process_there["target"].pop("kind") == "snapshot"
        assert live["target"].pop("kind") == "process"
        assert process_there["target"] == live["target"]
        assert process_there["threads"][0]["frames"] == live["threads"][0]["frames"]
    before = probing(file, "debug", "--dump", "--locals").out
    process.__exit__()
    assert probing(file, "debug", "--dump", "--locals").out == before
    fails(probing(file, "snapshot"), USAGE, "a snapshot already")


def test_snapshot_default_name_and_redaction(probing, target, tmp_path):
    process = target("sleeper.py")
    written = probing(process.pid, "snapshot", "--redact", cwd=tmp_path)
    assert written.code == OK, written
    file = tmp_path / ("probing-%d.snapshot" % process.pid)
    assert (file.stat().st_mode & 0o777) == 0o600
    assert b"it's" not in file.read_bytes()
    assert "it's" not in probing(file, "debug", "--dump", "--locals").out
    assert "sleep" in probing(file, "debug", "--dump").out


def test_snapshot_to_nowhere(probing, target):
    process = target("sleeper.py")
    result = probing(process.pid, "snapshot", "-o", "/nonexistent/file")
    fails(result, FAILED, "/nonexistent")


# Completion and man page

def bash_completes(probing, words):
    """bash's completions of the last word, through the function that it calls itself."""
    script = probing("completion", "bash").out + """
complete -p probing >/dev/null || exit 1
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
_probing
printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", script, "bash", "probing", *words], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert not done.stderr, done.stderr
    return done.stdout.decode().split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_parse(probing, shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip("%s is not installed" % shell)
    file = tmp_path / "_probing"
    file.write_text(probing("completion", shell).out)
    subprocess.run([shell, "--no-execute" if shell == "fish" else "-n", str(file)], check=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes(probing, target, tmp_path):
    words = bash_completes(probing, [""])
    assert set(COMMANDS) <= set(words) and "--target" in words
    assert bash_completes(probing, ["ba"]) == ["backtrace"]
    assert bash_completes(probing, ["completion", ""]) == ["bash", "zsh", "fish"]
    assert bash_completes(probing, ["help", "sn"]) == ["snapshot"]
    assert bash_completes(probing, ["42", "agent", "s"]) == ["status", "stop"]
    for command in ("eval", "repl"):
        assert bash_completes(probing, [command, "--thread", ""]) == ["agent", "main"]
    assert "--exe" not in bash_completes(probing, ["list", "--"])
    assert bash_completes(probing, ["-p", "42", "bt", "--nonb"]) == ["--nonblocking"]
    assert bash_completes(probing, ["list", "-t", "--js"]) == ["--json"]
    assert bash_completes(probing, ["debug", "--tid", ""]) == []
    for command in ("backtrace", "debug", "snapshot"):  # no lone dash is inserted
        assert bash_completes(probing, ["42", command, ""]) == [], command
    process = target("sleeper.py")
    assert str(process.pid) in bash_completes(probing, ["debug", "-p", ""])
    (tmp_path / "core.1234").touch()
    assert bash_completes(probing, ["-t", str(tmp_path / "co")]) == [str(tmp_path / "core.1234")]
    for command in COMMANDS:
        offered = bash_completes(probing, [command, "-"])
        for letter, name in options_of(probing, command):
            assert "--" + name in offered
            assert not letter or "-" + letter in offered


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completes(probing, tmp_path):
    def completes(line):
        script = probing("completion", "fish").out + "\ncomplete -C '%s'\n" % line
        done = subprocess.run(["fish", "--no-config", "-c", script], check=True,
                              stdout=subprocess.PIPE, env=dict(os.environ, HOME=str(tmp_path)))
        return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]

    assert completes("probing ba") == ["backtrace"]
    assert completes("probing completion z") == ["zsh"]
    assert completes("probing bt --nonb") == ["--nonblocking"]


def test_man_page_has_every_option(probing):
    page = probing("--man")
    assert page.code == OK and page.out.startswith(".\\\"")
    plain = re.sub(r"\\f.", "", page.out).replace("\\-", "-")
    for command in [None] + COMMANDS:
        section = plain if command is None else \
            re.search(r"^\.SS %s\b.*?(?=^\.S[HS] )" % command, plain, re.M | re.S).group(0)
        for letter, name in options_of(probing, command):
            line = "%s--%s" % ("-%s, " % letter if letter else "", name)
            both = section + plain.split(".SH OPTIONS")[1].split(".SH COMMANDS")[0]
            assert re.search(r"^%s\b" % re.escape(line), both, re.M), (command, name)
    for command, aliases in ALIASES.items():
        assert ".SS %s" % ", ".join([command] + aliases) in plain
    for code in range(7):
        assert "\n.B %d\n" % code in plain.split(".SH EXIT STATUS")[1]


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_man_page_is_sound(probing):
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Kutf8"],
                          input=probing("--man").out.encode(), check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert not done.stderr, done.stderr.decode()
    assert b"EXIT STATUS" in re.sub(rb".\x08", b"", done.stdout) or b"EXIT" in done.stdout


POOL = """
import os, sys, time
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        os.read(0, 1)
        os._exit(0)
    children.append(child)
print("ready", flush=True)
os.read(0, 1)
for child in children:
    os.waitpid(child, 0)
"""


def test_a_pool_by_its_name_is_its_parent(newest, tmp_path):
    """All that match are one process and its children: a dump takes the parent, and says so."""
    program = tmp_path / ("pool_%d.py" % os.getpid())
    program.write_text(POOL)
    with support.Target(newest, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        done = subprocess.run([support.BINARY, program.name, "dump"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.stdout.startswith("%d  " % process.pid), done
        assert "4 processes match: this is %d, the parent of the others" % process.pid in done.stderr
        # What changes a process takes no guess.
        done = subprocess.run([support.BINARY, program.name, "eval", "1"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2 and "is ambiguous: 4 Python processes match" in done.stderr
