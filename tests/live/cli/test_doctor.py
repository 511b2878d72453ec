# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing doctor`: its predictions about machines and processes are true, and it touches no process."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import environment
import support
from environment import (NO_PROCESS, OK, PERMISSION, SCRIPT, UNSUPPORTED, USAGE, Started,
                         assert_untouched)
from remote import Service, listening_ports

NOBODY = 65534
NOBODYS = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
WAIT = "import sys; print('ready'); sys.stdout.flush(); sys.stdin.read()"
DEBIAN = "/usr/bin/python3"
VERDICTS = {"ok", "limited", "no", "unknown"}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
needs_debugpy = environment.needs("python3-debugpy is not installed", DEBIAN, "-c", "import debugpy")


@pytest.fixture(scope="module")
def open_binary():
    """The command where everybody may run it, and a copy that nobody may read."""
    with tempfile.TemporaryDirectory(prefix="probing-doctor-") as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(support.BINARY, folder)


class Examined:
    """The command's JSON output, and its exit status."""

    def __init__(self, *words, before=(), binary=support.BINARY, **options):
        done = subprocess.run([*map(str, before), str(binary), *map(str, words), "doctor", "--json"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd="/", timeout=60, check=False, **options)
        self.code, self.err = done.returncode, done.stderr.decode()
        self.found = json.loads(done.stdout.decode()) if done.stdout else None
        self.lines = self.found["findings"] if self.found else []
        assert {line["verdict"] for line in self.lines} <= VERDICTS

    def __getitem__(self, name):
        line, = [line for line in self.lines if line["name"] == name]
        return line

    def verdict(self, name):
        return self[name]["verdict"]

    def ports(self, pid):
        return [line for line in self.lines
                if line["name"] == "debug port" and line["means"].startswith("%d " % pid)]


def started(newest, *arguments, **options):
    return Started([newest.exe, "-c", WAIT, *arguments], rest=1,
                   env=options.pop("env", newest.env), **options)


# The machine

@as_root
def test_root(probing):
    examined = Examined()
    assert examined.code == OK and not examined.err
    assert examined.found["readable"] and examined.found["pid"] is None
    for name in ("own processes", "process_vm_readv", "mem", "ptrace", "syscall", "schedstat",
                 "agent", "user"):
        assert examined.verdict(name) == "ok", examined[name]
    text = probing("doctor")
    assert text.code == OK and not text.err
    for line in examined.lines:
        assert "\n%s\n" % line["section"] in text.out and " %s " % line["name"] in text.out


def test_ptrace_scope_is_what_the_kernel_says():
    file = Path("/proc/sys/kernel/yama/ptrace_scope")
    line = Examined()["ptrace_scope"]
    if file.exists():
        assert line["means"].startswith(file.read_text().strip() + ": ")
    else:
        assert line["verdict"] == "ok" and "has no Yama" in line["means"]


@as_root
@pytest.mark.skipif(not Path("/proc/sys/kernel/yama/ptrace_scope").exists(),
                    reason="the kernel has no Yama")
def test_yama(open_binary):
    """The examined process is no child of the examiner."""
    file = Path("/proc/sys/kernel/yama/ptrace_scope")
    before = file.read_text()
    try:
        file.write_text("1")
        examined = Examined(binary=open_binary, **NOBODYS)
    finally:
        file.write_text(before)
    assert examined.code == PERMISSION and not examined.found["readable"]
    assert examined.verdict("own processes") == examined.verdict("ptrace_scope") == "no"
    assert "/proc/sys/kernel/yama/ptrace_scope" in examined["own processes"]["todo"]


@as_root
def test_other_user(open_binary, newest):
    with started(newest, env=dict(newest.env, LANG="C.UTF-8")) as process:
        machine = Examined(binary=open_binary, **NOBODYS)
        assert machine.verdict("CAP_SYS_PTRACE") == "limited"
        assert machine["CAP_SYS_PTRACE"]["todo"] == "sudo probing ..."
        assert "user %d" % NOBODY in machine["user"]["means"]
        one = Examined(process.python, binary=open_binary, **NOBODYS)
        assert one.code == PERMISSION and not one.err and one.found["pid"] == process.python
        assert not one.found["readable"]
        assert "user 0 and we are user %d" % NOBODY in one["reading"]["means"]
        assert one.verdict("reading") == one.verdict("user") == "no"
        assert one.verdict("interpreter") == "unknown"
        assert_untouched(process.python)


@as_root
def test_nothing_can_be_read(open_binary, tmp_path_factory):
    """A program file that its user may run and not read: processes of it are not dumpable."""
    os.chmod(open_binary, 0o111)
    try:
        examined = Examined(binary=open_binary, **NOBODYS)
    finally:
        os.chmod(open_binary, 0o755)
    assert examined.code == PERMISSION and not examined.err
    assert examined.verdict("own processes") == "no" and examined["own processes"]["todo"]
    assert not examined.found["readable"]


@pytest.fixture(scope="module")
def filter_calls():
    program = environment.build("env_filter.c", "env_filter")
    if subprocess.run([str(program), "none", "/bin/true"], check=False).returncode:
        pytest.skip("no seccomp filters here")
    return program


@pytest.mark.parametrize("how, said", [("", "not permitted"), ("kill:", "is killed")])
def test_filters_of_system_calls(filter_calls, how, said):
    examined = Examined(before=[filter_calls, how + "process_vm_readv"])
    assert examined["process_vm_readv"]["verdict"] == "limited"
    assert said in examined["process_vm_readv"]["means"]
    assert "seccomp=unconfined" in examined["process_vm_readv"]["todo"]
    assert examined.verdict("ptrace") == "ok" and examined.verdict("seccomp") == "limited"
    if how:
        # Nothing that kills us is done to others.
        assert examined.code == PERMISSION and examined.verdict("own processes") == "no"
        assert examined.verdict("interpreter") == examined.verdict("debug port") == "unknown"
    else:
        assert examined.code == OK and "/proc/PID/mem" in examined["own processes"]["means"]
    examined = Examined(before=[filter_calls, how + "ptrace,perf_event_open"])
    assert examined.verdict("own processes") == "ok"
    for name in ("ptrace", "perf breakpoints", "perf clocks"):
        assert examined.verdict(name) == "limited" and said in examined[name]["means"]


@environment.needs("no user namespaces here", "unshare", "-U", "-r", "true")
def test_user_namespace(newest):
    with started(newest) as process:
        examined = Examined(before=["unshare", "-U", "-r"])
        assert examined.code == OK and examined.verdict("user namespace") == "limited"
        one = Examined(process.python, before=["unshare", "-U", "-r"])
        assert one.code == PERMISSION and "user namespace" in one["reading"]["means"]


@environment.needs("no pid namespaces here", "unshare", "-p", "-f", "--mount-proc", "true")
def test_pid_namespace(newest):
    """In a pid namespace, and about a process within one."""
    examined = Examined(before=["unshare", "-p", "-f", "--mount-proc"])
    assert examined.code == OK and examined.verdict("pid namespace") == "limited"
    with Started(["unshare", "-p", "-f", newest.exe, "-c", WAIT], rest=1,
                 env=newest.env) as process:
        one = Examined(process.python)
        assert one.code == OK and one["pid namespace"]["means"].startswith("another one")
        assert one["network namespace"]["means"] == "the same as ours"


HIDDEN = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'


@as_root
@environment.needs("/proc cannot hide processes here", "unshare", "-m", "-p", "-f", "sh", "-c", HIDDEN,
                   "sh", "true")
def test_hidepid(open_binary):
    before = ["unshare", "-m", "-p", "-f", "sh", "-c", HIDDEN, "sh"]
    root = Examined(before=before)
    assert root.verdict("hidepid") == "ok" and "hidepid=" in root["hidepid"]["means"]
    become = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    other = Examined(before=[*before, *become], binary=open_binary)
    assert other.verdict("hidepid") == "limited" and "remount" in other["hidepid"]["todo"]


def test_no_folder_for_the_cache(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    examined = Examined(env=dict(os.environ, XDG_CACHE_HOME=str(place), PROBING_AGENT=str(place) + "x"))
    assert examined.verdict("agent") == "no" and "PROBING_AGENT" in examined["agent"]["todo"]


# A process

def test_process(newest, target, probing):
    process = target("sleeper.py")
    environment.settle(process.pid, 1)
    before = environment.resting(process.pid)
    one = Examined(process.pid)
    assert environment.resting(process.pid) == before
    assert one.code == OK and one.found["pid"] == process.pid
    assert newest.full_version.split("+")[0] in one["interpreter"]["means"]
    assert "not loaded" in one["agent"]["means"]
    for words in (["-p", process.pid, "doctor"], ["doctor", process.pid]):
        text = probing(*words)
        assert text.code == OK and text.out.startswith("%d  " % process.pid)
    assert probing(process.pid, "eval", "1").code == OK
    assert "runs" in Examined(process.pid)["agent"]["means"]


@environment.ONE_EACH
def test_where_the_layout_comes_from(interpreter):
    with Started([interpreter.exe, SCRIPT], env=interpreter.env) as process:
        layout = support.dump(process.python)["target"]["python"]["layout"]
        words = {"debug_offsets": "the process itself", "dwarf": "debug information (DWARF)",
                 "table": "built-in table"}[layout]
        assert "layout from " in Examined(process.python)["interpreter"]["means"]
        assert words in Examined(process.python)["interpreter"]["means"]


def test_stopped_and_traced(newest):
    tracer = """if True:
        import ctypes, sys
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long] * 4
        assert not libc.ptrace(0x4206, int(sys.argv[1]), 0, 0)
        print("ready", flush=True)
        sys.stdin.read()"""
    with started(newest) as process:
        os.kill(process.python, signal.SIGSTOP)
        os.waitpid(process.python, os.WUNTRACED)
        one = Examined(process.python)
        assert one.verdict("state") == "limited"
        assert one["state"]["todo"] == "kill -CONT %d" % process.python
        os.kill(process.python, signal.SIGCONT)
        with support.Program([newest.exe, "-c", tracer, process.python], env=newest.env) as other:
            assert other.line() == "ready"
            one = Examined(process.python)
            assert one.verdict("tracer") == "limited"
            assert "process %d (" % other.pid in one["tracer"]["means"]


@as_root
def test_dumpable(newest):
    code = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); " + WAIT
    for program, verdict in ((WAIT, "ok"), (code, "limited")):
        try:
            with Started([DEBIAN, "-c", program], rest=1, cwd="/", **NOBODYS) as process:
                assert Examined(process.python).verdict("dumpable") == verdict
        except FileNotFoundError:
            pytest.skip("no interpreter here may be run by everybody")


def test_a_build_without_the_page():
    features = subprocess.run([support.BINARY, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    page = Examined()["page"]
    if re.search(r"^not built: .*page", features, re.M):
        assert page["verdict"] == "limited" and "programs alone" in page["means"], page
    else:
        assert re.search(r"^features: .*page", features, re.M) and "browsers" in page["means"], (page, features)


def test_what_is_no_process(probing, tmp_path, target):
    process = target("sleeper.py")
    snapshot = tmp_path / "a.snapshot"
    assert probing(process.pid, "snapshot", "-o", snapshot).code == OK
    refused = probing(snapshot, "doctor")
    assert refused.code == UNSUPPORTED and "processes that run" in refused.err
    assert probing(2 ** 22 + 1, "doctor").code == NO_PROCESS
    assert probing(process.pid, "doctor", "1").code == USAGE


# Debuggers that listen

LISTENING = """if True:
    import sys
    import debugpy
    address = debugpy.listen((sys.argv[1], 0))
    print("ready", address[1], flush=True)
    sys.stdin.read()"""


@needs_debugpy
@pytest.mark.parametrize("host, verdict", [("127.0.0.1", "limited"), ("0.0.0.0", "no")])
def test_debugpy(host, verdict):
    with support.Program([DEBIAN, "-c", LISTENING, host]) as process:
        port = process.line().split()[1]
        adapters = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and
                    is_adapter(int(pid)) and int(port) in listening_ports(int(pid))]
        adapter, = adapters
        found = Examined().ports(adapter)
        assert any(line["verdict"] == verdict and "looks like debugpy" in line["means"] and
                   "%s:%s" % (host, port) in line["means"] and line["todo"] for line in found), found
        assert_untouched(adapter)
        assert_untouched(process.pid)
        here, = Examined(process.pid).ports(process.pid)[:1]
        assert "looks like debugpy" in here["means"] and "no port itself" in here["means"]
        own = [line for line in Examined(adapter).lines if line["name"] == "debug port"]
        assert own == [dict(line, section=own[0]["section"]) for line in found]


def is_adapter(pid):
    """True if a process is debugpy's adapter, which listens for editors."""
    try:
        return b"debugpy/adapter\0" in Path("/proc/%d/cmdline" % pid).read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


RAS = """if True:
    import mmap, socket, sys
    with open(sys.argv[1], "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    listening = [socket.socket(), socket.socket()]
    listening[0].bind((sys.argv[2], int(sys.argv[3])))
    listening[1].bind(("0.0.0.0", 0))
    [one.listen() for one in listening]
    print("ready", flush=True)
    sys.stdin.read()"""


@pytest.mark.parametrize("host, verdict", [("127.0.0.1", "limited"), ("0.0.0.0", "no")])
def test_the_service_of_nccl(newest, tmp_path, host, verdict):
    """A library of that name, and a port given to NCCL; another port does not count."""
    (tmp_path / "libnccl.so.2").write_bytes(b"mapped like a library")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    variables = dict(os.environ, **(newest.env or {}), NCCL_RAS_ADDR="localhost:" + port)
    with support.Program([newest.exe, "-c", RAS, tmp_path / "libnccl.so.2", host, port],
                         env=variables) as process:
        assert process.line() == "ready"
        line, = Examined().ports(process.pid)
        assert line["verdict"] == verdict and "NCCL's RAS" in line["means"], line
        assert "listens on %s:%s, which" % (host, port) in line["means"] and "NCCL_RAS_ENABLE" in line["todo"]
        assert_untouched(process.pid)


TORCH_SERVER = """if True:
    import socket, sys, types
    sys.modules["torch.distributed.debug"] = types.ModuleType("torch.distributed.debug")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print("ready", flush=True)
    sys.stdin.read()"""


def test_the_debug_server_of_torch(newest):
    with support.Program([newest.exe, "-c", TORCH_SERVER], env=newest.env) as process:
        assert process.line() == "ready"
        line, = Examined().ports(process.pid)
        assert line["verdict"] == "limited" and "torch.distributed" in line["means"], line


IMPOSTOR = """if True:
    import ctypes, socket, sys
    ctypes.CDLL(None).prctl(15, b"\\x1b]0;own\\n\\xff", 0, 0, 0)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print("ready", listening.getsockname()[1], flush=True)
    sys.stdin.read()"""


def test_names_of_others_cannot_reach_the_terminal(probing_in_terminal, newest):
    """A process that calls itself by control characters, and wants to be taken for a debugger."""
    with support.Program([newest.exe, "-c", IMPOSTOR, "debugpy", "\x1b[2J\u202e"],
                         env=newest.env) as process:
        port = process.line().split()[1]
        for words in (["doctor"], [process.pid, "doctor"]):
            text = probing_in_terminal(*words, env={"NO_COLOR": "1"})
            assert "looks like debugpy" in text and "127.0.0.1:" + port in text
            assert "\x1b" not in text and "\u202e" not in text and r"\x1b]0;own" in text
        line, = Examined().ports(process.pid)
        assert "the command line has 'debugpy'" in line["means"]


def test_words_that_only_contain_the_name(newest):
    code = IMPOSTOR.replace("ctypes.CDLL", "id or ctypes.CDLL")
    with support.Program([newest.exe, "-c", code, "debugpyx", "ipykernels"],
                         env=newest.env) as process:
        process.line()
        assert not Examined().ports(process.pid)


def test_served_process(target):
    process = target("sleeper.py")
    with Service(process.pid) as service:
        line, = Examined().ports(process.pid)
        assert service.address in line["means"] and line["verdict"] == "limited"
        there = service.run("doctor", "--json")
        assert there.returncode == OK, there
        assert json.loads(there.stdout.decode())["pid"] == process.pid
        other = service.run("doctor", os.getpid())
        assert other.returncode == USAGE and not other.stdout, other
