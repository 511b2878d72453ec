# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs under seccomp filters: all calls that will be made in them are known to be allowed before
anything is done there. The list of those calls is compared with the real calls."""
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import environment
import faults
import sandboxes
import support
import test_faults_musl
import training
from environment import OK, UNSUPPORTED
from faults import Cell
from sandboxes import ACTIONS, answered, listed, makers_on, numbers, watched

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can read seccomp filters"),
    pytest.mark.skipif(Path("/proc/sys/kernel/seccomp/actions_avail").exists() and "user_notif"
                       not in Path("/proc/sys/kernel/seccomp/actions_avail").read_text("ascii"),
                       reason="this kernel tells nobody of system calls")]

LINE = "%s:%d" % ("sandboxed.py", next(
    number for number, line in enumerate(
        (environment.PROGRAMS / "sandboxed.py").read_text("ascii").split("\n"), 1)
    if "shared[0] += 1" in line))
# Every command that loads the agent, with its stdin.
COMMANDS = {
    "eval": (["eval", "print(40 + 2)"], b""),
    "repl": (["repl"], b"40 + 2\n"),
    "inject": (["inject"], b""),
    "inject-code": (["inject", "-e", "print(42)"], b""),
    "inject-crash": (["inject", "--crash"], b""),
    "pause": (["debug", "--pause", "--max", "0.2s"], b""),
    "prompt": (["debug", "--within", "30s"], b"tbreak sys.exit\np 40 + 2\nq\n"),
    "dap": (["debug", "--dap=127.0.0.1:0", "--debugpy", "DEBUGPY"], b""),
    "trace-line": (["trace", LINE, "shared", "--for", "0.2s"], b""),
    "trace-calls": (["trace", "--calls", "step", "--for", "0.2s"], b""),
    "sites": (["memory", "--sites", "0.2s"], b""),
    "exact": (["perf", "--torch", "--exact", "--steps", "2", "--duration", "10s"], b""),
    "set": (["query", "SET probing.sample_rate = 0.5"], b""),
    "query": (["query", "SELECT * FROM python.`40 + 2`"], b""),
}
WITH_TORCH = ("exact",)
COMMANDS_WITHOUT = [name for name in COMMANDS if name not in WITH_TORCH]


LISTENING = []


@functools.lru_cache(maxsize=None)
def no_debugpy():
    """debugpy's own calls are its own affair: it says that it listens where we do."""
    folder = Path(environment.build_folder().name) / "debugpy"
    folder.mkdir()
    LISTENING.append(socket.create_server(("127.0.0.1", 0)))
    (folder / "__init__.py").write_text(
        "__version__ = '1'\n\ndef listen(address):\n    return %r\n" % (LISTENING[0].getsockname(),), "ascii")
    return folder


def run(pid, name):
    words, typed = COMMANDS[name]
    words = [str(no_debugpy()) if word == "DEBUGPY" else word for word in words]
    done = subprocess.run([support.BINARY, str(pid), *words], input=typed, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def libc_of(pid):
    """The version of its glibc, or "musl"."""
    maps = Path("/proc/%d/maps" % pid).read_text("utf-8")
    path = re.search(r" (/\S*/(?:libc\.so\.6|libc-2\.\d+\.so|ld-musl-\S+))", maps)[1]
    if "musl" in path:
        return "musl"
    content = Path("/proc/%d/root%s" % (pid, path)).read_bytes()
    found = re.search(rb"GNU C Library .*? release version (\d+)\.(\d+)", content)
    return int(found[1]), int(found[2])


@functools.lru_cache(maxsize=None)
def makers_of(interpreter):
    with support.Program([interpreter.exe, "-c", "print(1, flush=True); input()"],
                         env=interpreter.env) as process:
        process.line()
        return makers_on(libc_of(process.pid))


@environment.ONE_EACH
def test_every_call_is_listed(interpreter):
    """The agent's calls in a process are in the list, for every command that loads it."""
    if not interpreter.has_ctypes:
        pytest.skip("no ctypes")
    makers = makers_of(interpreter)
    for name in COMMANDS_WITHOUT:
        with watched(interpreter, makers | of_command(name)) as process:
            assert_listed(process, name)


def of_command(name):
    """Further callers of the command."""
    return sandboxes.CRASHES if name == "inject-crash" else 0


def assert_listed(process, name):
    assert not process.noted()
    code, out, err = run(process.pid, name)
    assert code == OK, (name, code, out, err)
    assert subprocess.run([support.BINARY, str(process.pid), "eject"], stdout=subprocess.PIPE,
                          check=False).returncode == OK
    process.assert_lives()
    assert not process.noted(), name


NOBODY, OCCUPIED = 65534, 61523


@pytest.mark.parametrize("user", [NOBODY, OCCUPIED])
def test_every_call_of_a_user_is_listed(newest, user):
    """The agent's folder in /tmp: the number of a user may say nothing, and the folder be another's."""
    if not newest.has_ctypes:
        pytest.skip("no ctypes")
    folder = Path("/tmp/probing-%d" % OCCUPIED)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        for name in ("eval", "trace-calls", "pause", "inject-crash"):
            with watched(newest, makers_of(newest) | of_command(name), "user", user) as process:
                assert_listed(process, name)
    finally:
        for path in Path("/tmp").glob(folder.name + "*"):
            shutil.rmtree(path)


def test_every_call_of_exact_is_listed():
    training.check()
    with support.Program([training.SYSTEM.exe, "-c", "print(1, flush=True); input()"]) as process:
        process.line()
        makers = makers_on(libc_of(process.pid))
    with watched(training.SYSTEM, makers, "torch") as process:
        assert_listed(process, "exact")


@environment.ONE_EACH
@pytest.mark.parametrize("how", ["fault", "exception"])
def test_every_call_of_a_crash_is_listed(interpreter, how, tmp_path):
    """Those of the process that dies, and of the child that writes the record."""
    if not interpreter.has_ctypes:
        pytest.skip("no ctypes")
    with watched(interpreter, makers_of(interpreter) | sandboxes.CRASHES) as process:
        done = subprocess.run(
            [support.BINARY, str(process.pid), "inject", "-c", "-D", "crash.folder=%s" % tmp_path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == OK, done
        assert not process.noted()
        process.stop(1 if how == "fault" else 2)
        assert process.wait()[0] == (-signal.SIGSEGV if how == "fault" else 1)
        late = how == "exception" and b"are recorded once" in done.stderr
        assert late or len(list(tmp_path.iterdir())) == 1
        # Python's own calls at its end.
        assert not [call for call in process.noted() if how == "fault" or call[1] == "other"]


# Files that load the agent, and the command above that each belongs to.
LOADERS = {
    "cli/commands/agent/relay.c": "eval",
    "cli/commands/debug/dap.c": "dap",
    "cli/commands/eval/eval.c": "eval",
    "cli/commands/inject/inject.c": "inject",
    "cli/commands/repl.c": "repl",
    "cli/commands/trace.c": "trace-line",
    "control/load.c": "eval",
    "control/config.c": "set",
    "control/expression.c": "query",
    "control/pause.c": "pause",
    "control/drive/drive.c": "prompt",
    "lib/library_eval.c": "eval",
    "cli/commands/memory/sites/sites.c": "sites",
    "cli/commands/perf/torch/exact/exact.c": "exact",
    # The calls of torch's own profiler are its affair.
    "cli/commands/perf/torch/ops/ops.c": "exact",
    # As above, of its allocator for GPUs.
    "cli/commands/memory/history/history.c": "exact",
}


def test_no_command_is_forgotten():
    """Every command that loads the agent is watched above."""
    found = {str(path.relative_to(support.ROOT)) for path in support.ROOT.glob("*/**/*.c")
             if path.relative_to(support.ROOT).parts[0] not in ("build", "tests")
             and re.search(r"\bprb_agent_(reach\((?!.*\bfalse,)|load\()", path.read_text("utf-8"))}
    assert found == set(LOADERS)
    assert set(LOADERS.values()) <= set(COMMANDS)


def test_calls_on_musl():
    """The agent serves a program without Python there."""
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl-gcc")
    program = Path(environment.build_folder().name) / "sandbox-musl"
    subprocess.run(["musl-gcc", *test_faults_musl.HEADERS, "-DPROGRAM", "-I%s" % support.ROOT, "-o",
                    program, environment.PROGRAMS / "sandbox.c"], check=True)
    agent = Path(support.BINARY).parent / "libprobing-agent.so"
    with sandboxes.Sandboxed([program], "note", makers_on("musl")) as process:
        for words in (["inject", "--library", agent, "--symbol", "probing_agent_start"],
                      ["agent", "status"], ["query", "SET probing.sample_rate = 0.5"], ["eject"]):
            done = subprocess.run([support.BINARY, str(process.pid), *words], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert done.returncode == OK, (words, done)
        process.assert_lives()
        assert not process.noted()


# Calls that nothing makes, which filters of sandboxes often forbid, and all calls that are made.
OTHERS = [name for name in (
    "reboot", "ptrace", "execve", "fork", "vfork", "connect", "sendmsg", "select", "pipe2",
    "mount", "bpf", "io_uring_setup", "kill", "statx") if name in numbers()]
NAMES = sorted({call.name.decode() for call in listed()}) + OTHERS
SAMPLE = {
    "kill": ["socket", "listen", "poll", "fcntl", "newfstatat", "geteuid", "reboot"],
    "trap": ["bind", "unlink", "fstat", "getpid", "restart_syscall"],
    "errno": ["accept4", "getsockopt", "rseq", "mkdir", "clone3"],
    "eperm": ["listen", "clone3", "memfd_create", "faccessat2"],
    "log": ["socket"]}
WHOLE = support.LONG or faults.RUNS > 10


# Commands that report a missing feature once the agent is loaded.
SAYS = {("process_vm_readv", "sites"): "allocations cannot be sampled there"}


def forbids(name, action, makers, command):
    """Whether a process that answers the call so must not be touched."""
    makers |= of_command(command)
    if action == "log":
        return False
    return any(not copes(call.failure, action) for call in listed()
               if call.name.decode() == name and call.maker & makers)


def copes(failure, action):
    """True if the caller can continue without the call."""
    return (failure == sandboxes.MAY_FAIL and action in ("errno", "eperm") or
            failure == sandboxes.MAY_LACK and action == "errno")


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_dies(newest, action):
    """A filter that forbids a needed call is found before anything is done; forbidding an optional call
    harms nothing: each call x each action x each command that loads the agent."""
    if not newest.has_ctypes:
        pytest.skip("no ctypes")
    makers, bad = makers_of(newest), []
    cell = Cell("each call of the agent, by seccomp: " + action)
    for name in NAMES if WHOLE else [name for name in SAMPLE[action] if name in NAMES]:
        try:
            try_commands(cell, newest, makers, name, action)
        except AssertionError as error:
            bad.append("%s: %s" % (name, error))
    assert not bad, "\n".join(bad)
    cell.passed()


def try_commands(cell, interpreter, makers, name, action):
    refused = [command for command in COMMANDS_WITHOUT if forbids(name, action, makers, command)]
    if refused:
        with answered(interpreter, name, action) as process:
            for command in refused:
                run_cell(cell, process, command, UNSUPPORTED,
                         "its seccomp filter does not allow %s()" % name)
            assert "probing-agent" not in Path("/proc/%d/maps" % process.pid).read_text("utf-8")
    for command in COMMANDS_WITHOUT:
        if command not in refused:
            with answered(interpreter, name, action) as process:
                run_cell(cell, process, command, OK, SAYS.get((name, command)))


def run_cell(cell, process, command, wanted, says):
    """The command succeeds, or says why not; the process notices nothing."""
    began = time.monotonic()
    code, out, err = run(process.pid, command)
    took = time.monotonic() - began
    cell.note(code, {}, err, took)
    # A refusal names the call; missing parts of the loaded agent are named where they are known.
    assert code == wanted and (wanted == OK or says in err) or wanted == OK and says and says in err, (
        command, code, out, err)
    assert took < 10, (command, took)
    process.assert_lives()


# Calls with such arguments: their need of a command that loads the agent, or None.
BY_ARGUMENTS = {
    "descriptor-to-read": ("read", 0, ">", 2, "eval"),
    "descriptor-to-close": ("close", 0, ">", 2, "eval"),
    "poll-two": ("poll", 1, ">", 1, "eval"),
    "poll-for-ever": ("poll", 2, "=", 0xffffffff, "eval"),
    "poll-for-a-while": ("poll", 2, "=", 5000, "eval"),
    "send-without-waiting": ("sendto", 3, "&", 0x40, "eval"),
    "send-to-an-address": ("sendto", 5, ">", 0, "eval"),
    "accept-flags": ("accept4", 3, ">", 0, "eval"),
    "memory-of-a-thread": ("mmap", 1, ">", 64 << 20, "eval"),
    "shared-memory": ("mmap", 3, "&", 1, "eval"),
    "memory-not-needed": ("madvise", 2, "=", 4, "eval"),
    "memory-not-dumped": ("madvise", 2, "=", 16, "inject-crash"),
    "signal-of-a-fault": ("rt_sigaction", 0, "=", 11, "inject-crash"),
    "wait-until": ("futex", 1, "=", 0x189, "eval"),
    "wait-private": ("futex", 1, "=", 0x80, "eval"),
    "wake": ("futex", 1, "=", 0x81, "eval"),
    "create-a-file": ("openat", 2, "&", 0o100, "eval"),
    "name-of-a-thread": ("prctl", 0, "=", 15, "eval"),
    "unix-socket": ("socket", 0, "=", 1, "eval"),
    "read-much": ("read", 2, ">", 32767, "eval"),
    "list-much": ("getdents64", 2, ">", 32767, "eval"),
    "allocate-much-of-a-file": ("fallocate", 3, ">", (1 << 20) - 1, "eval"),
    "low-descriptor": ("fstat", 0, "<", 200, "eval"),
    "short-address": ("bind", 2, "<", 20, "eval"),
    "shortest-address": ("bind", 2, "<", 9, "eval"),
    "part-of-a-file": ("mmap", 5, "!", 0, "eval"),
    "little-memory": ("mmap", 1, "<", 4096, "eval"),
    "two-pages": ("mmap", 1, "<", 8192, "eval"),
    "give-back-little": ("munmap", 1, "<", 4096, "eval"),
    "poll-just-two": ("poll", 1, "=", 2, "eval"),
    "long-link": ("readlink", 2, ">", 3999, "eval"),
    "receive-little": ("recvfrom", 2, "<", 2, "eval"),
    "wake-all": ("futex", 2, "=", 0x7fffffff, "eval"),
    "futex-of-some-value": ("futex", 2, ">", 1, "eval"),
    "signals-of-a-wait": ("ppoll", 4, "!", 0, "eval"),
    "memory-high-up": ("mmap", 0, "^", 0, "eval"),
    "timeout-high-up": ("futex", 3, "^", 0, "eval"),
    "address-high-up": ("sendto", 4, "^", 0, "eval"),
    "time-of-a-wait-high-up": ("ppoll", 2, "^", 0, "eval"),
    "signals-high-up": ("rt_sigprocmask", 2, "^", 0, "eval"),
    "stack-of-signals-high-up": ("sigaltstack", 0, "^", 0, "eval"),
    "internet-socket": ("socket", 0, "=", 2, None),
    "much-memory": ("mmap", 1, ">", 1 << 30, None),
    "writable-code": ("mmap", 2, "=", 7, None),
    "priority-lock": ("futex", 1, "=", 0x86, None),
    "cut-a-file": ("openat", 2, "&", 0o1000, None),
}


@pytest.mark.skipif("poll" not in numbers(), reason="the machine has ppoll() alone")
@pytest.mark.parametrize("name", BY_ARGUMENTS)
def test_no_arguments_kill(newest, name):
    """A filter on arguments is evaluated with all the arguments that will be passed."""
    if not newest.has_ctypes:
        pytest.skip("no ctypes")
    call, number, comparison, value, command = BY_ARGUMENTS[name]
    with answered(newest, call, "kill", argument=(number, comparison, value)) as process:
        code, out, err = run(process.pid, command or "eval")
        process.assert_lives()
        if command:
            assert code == UNSUPPORTED and "does not allow %s()" % call in err, (code, out, err)
            doctor = subprocess.run([support.BINARY, str(process.pid), "doctor"], check=False,
                                    stdout=subprocess.PIPE).stdout.decode()
            assert ("does not allow %s()" % call in doctor) == (command == "eval"), doctor
        else:
            assert_serves(process)


def assert_serves(process):
    """The process still serves."""
    for command in ("eval", "inject-crash"):
        code, out, err = run(process.pid, command)
        assert code == OK, (command, code, out, err)
    assert subprocess.run([support.BINARY, str(process.pid), "eject"], check=False,
                          stdout=subprocess.PIPE).returncode == OK
    process.assert_lives()


# Comparisons of an argument with a value, and whether such bounds can be searched.
COMPARISONS = {"=": lambda low, high, value: low <= value <= high,
               ">": lambda low, high, value: high > value,
               "<": lambda low, high, value: low < value}
VALUES = {1, 200, 4096, 1 << 20}  # besides the bounds


def comparisons():
    """Each call of the list x each of its arguments x each comparison x some values; sampled."""
    values = {}
    for call in listed():
        for number, argument in enumerate(call.arguments):
            values.setdefault((call.name.decode(), number), set(VALUES)).update(argument.words())
    cases = [(call, number, comparison, value) for (call, number), some in sorted(values.items())
             for comparison in COMPARISONS for value in sorted(some)]
    cases += [(call, number, "^", 0) for call, number in sorted(values)]
    return cases[::1 if WHOLE else 211]


def finds(arguments, makers):
    """Whether a filter with that comparison finds calls of ours."""
    call, number, comparison, value = arguments
    ranges = [one.arguments[number] for one in listed()
              if one.name.decode() == call and one.maker & makers]
    if comparison == "^":
        return any(not one.bounded or one.high >> 31 for one in ranges)
    return any(COMPARISONS[comparison](*one.words(), value) for one in ranges)


@pytest.mark.parametrize("arguments", comparisons(), ids=lambda case: "%s-%d-%s-%#x" % case)
def test_no_values_kill(newest, arguments):
    """The list has all values of all arguments: other values may be forbidden."""
    if not newest.has_ctypes:
        pytest.skip("no ctypes")
    call, *argument = arguments
    makers = makers_of(newest)
    with answered(newest, call, "kill", argument=argument) as process:
        for command in ("eval", "inject-crash"):
            refused = finds(arguments, makers | of_command(command))
            code, out, err = run(process.pid, command)
            assert code == (UNSUPPORTED if refused else OK), (command, code, out, err)
            assert not refused or "does not allow %s()" % call in err, err
            process.assert_lives()
        done = subprocess.run([support.BINARY, str(process.pid), "eject"], check=False,
                              stdout=subprocess.PIPE)
        assert done.returncode == OK or finds(arguments, makers)
        process.assert_lives()


@pytest.mark.parametrize("which", ["main", "other"])
def test_each_thread_has_filters_of_its_own(newest, which):
    """Whichever thread is hijacked, others come to run the agent's code."""
    if not newest.has_ctypes:
        pytest.skip("no ctypes")
    with answered(newest, "listen", "kill", which) as process:
        environment.wait_until(lambda: "2" in {
            support.thread_status(process.pid, tid)["Seccomp"]
            for tid in support.thread_ids(process.pid)})
        code, _, err = run(process.pid, "eval")
        assert code == UNSUPPORTED and "does not allow listen()" in err, err
        process.assert_lives()


@pytest.mark.parametrize("name", ["socket", "mprotect", "reboot"])
def test_doctor_says_the_same(newest, name):
    if not newest.has_ctypes:
        pytest.skip("no ctypes")
    with answered(newest, name, "kill") as process:
        done = subprocess.run([support.BINARY, str(process.pid), "doctor"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        said = next(line for line in done.stdout.decode().split("\n") if " seccomp " in line)
        assert ("does not allow %s()" % name in said) == (name != "reboot"), said
        assert ("allow the agent all" in said) == (name == "reboot"), said
        process.assert_lives()
