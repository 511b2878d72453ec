# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks of another user on recordings, snapshots, served processes and later features: through names,
links, sockets, variables and files that root reads."""
import json
import os
import resource
import socket
import stat
import subprocess

import pytest

import remote
import support
from environment import OK, PERMISSION, wait_until
from files_support import (  # noqa: F401 (fixtures)
    AS_USER, FRAME, USER, Openings, folder, needs_root, program, run, sources, theirs, write)

pytestmark = needs_root
SECRET = b"only root may read this line\n"
# Terminal control characters, and separators of recording formats.
EVIL = "\x1b]0;owned\x07\x1b[2J\u202e;a 999\nb;c 7\t\r"

BUSY = """
import sys, types
def burn():
    while True:
        sum(range(1000))
code = burn.__code__
name, path = sys.argv[1], sys.argv[2]
code = code.replace(co_name=name, co_filename=path, **(
    {"co_qualname": name} if sys.version_info >= (3, 11) else {}))
print("ready", flush=True)
types.FunctionType(code, globals())()
"""


def harmless(text):
    for byte in b"\x1b\x07\x08\x00\r":
        assert bytes([byte]) not in text, text
    assert "\u202e" not in text.decode() and "\x9b" not in text.decode(), text
    return text.decode()


@pytest.fixture
def sticky(folder):
    """A folder like /tmp: everybody can create files there, and nobody can remove other users' files."""
    path = folder / "sticky"
    path.mkdir()
    path.chmod(0o1777)
    return path


# Files that root has written

@pytest.mark.parametrize("words", [
    ("perf", "--duration", "0.2", "-o", "{}.collapsed"),
    ("perf", "--duration", "0.2", "-o", "{}.speedscope.json"), ("snapshot", "-o", "{}")],
    ids=["collapsed", "speedscope", "snapshot"])
@pytest.mark.parametrize("chain", [False, True], ids=["link", "link to a link"])
def test_no_file_is_written_behind_a_link_of_another_user(folder, sticky, words, chain):
    """Names in /tmp can be guessed; the link is there before root chooses the name."""
    secret = write(folder / "secret", SECRET, 0o600)
    path = words[-1].format(sticky / "out")
    link = sticky / "other" if chain else path
    os.symlink(secret, link)
    os.chown(link, USER, USER, follow_symlinks=False)
    if chain:
        os.symlink("other", path)
    with program(BUSY, "burn", "burn.py") as process:
        refused = run(process.pid, *words[:-1], path)
    assert refused.returncode == PERMISSION, refused
    assert ("is a symbolic link of user %d" % USER).encode() in refused.stderr, refused
    assert secret.read_bytes() == SECRET
    assert sorted(os.listdir(sticky)) == sorted({os.path.basename(path), os.path.basename(link)})


def test_a_link_of_root_is_followed(folder, sticky):
    os.symlink("chosen", folder / "link.collapsed")
    with program(BUSY, "burn", "burn.py") as process:
        done = run(process.pid, "perf", "--duration", "1", "-o", folder / "link.collapsed")
    assert done.returncode == OK, done
    assert (folder / "link.collapsed").is_symlink()
    assert stat.S_IMODE((folder / "chosen").stat().st_mode) == 0o600
    assert b"burn" in (folder / "chosen").read_bytes()


def test_a_file_that_another_user_keeps_open_is_not_written(folder, sticky):
    """The file is replaced: the new one is root's, and nobody else can read it."""
    path = write(sticky / "out.collapsed", b"theirs\n", 0o666, USER, USER)
    with program(BUSY, "burn", "burn.py") as process, open(path, "rb") as kept:
        assert run(process.pid, "perf", "--duration", "0.3", "-o", path).returncode == OK
        assert kept.read() == b"theirs\n"
    assert (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) == (0, 0o600)


# Names that a program chose

def test_names_in_a_recording(folder):
    """A name is one frame in each format, and nothing that a terminal acts on."""
    with program(BUSY, EVIL, EVIL + ".py") as process:
        for options in ((), ("--lines",), ("--threads", ".")):
            done = run(process.pid, "perf", "--duration", "1", *options)
            assert done.returncode == OK, done
            assert "owned" in harmless(done.stdout + done.stderr)
        files = {end: folder / ("out" + end) for end in (".collapsed", ".speedscope.json")}
        for path in files.values():
            done = run(process.pid, "perf", "--duration", "1", "-o", path)
            assert done.returncode == OK, done
    lines = harmless(files[".collapsed"].read_bytes()).splitlines()
    assert lines and all("owned" in line or ";" not in line for line in lines), lines
    for line in lines:  # the name has no separator of the format
        stack, _, weight = line.rpartition(" ")
        assert weight.isdigit() and stack.count(";") <= 2, line
    names = [frame["name"] for frame in
             json.loads(files[".speedscope.json"].read_text("utf-8"))["shared"]["frames"]]
    assert any("owned" in name for name in names), names


def test_lines_of_a_recording_open_no_pipe(folder, theirs):
    pipe = theirs / "pipe.py"
    os.mkfifo(pipe)
    os.chown(pipe, USER, USER)
    with program(BUSY, "burn", str(pipe)) as process, Openings(pipe) as openings:
        done = run(process.pid, "perf", "--lines", "--duration", "0.3", timeout=30)
        assert done.returncode == OK and not openings.opened(), done


RENAMES = """
import ctypes, sys, threading
ctypes.CDLL(None).prctl(15, sys.argv[1].encode()[:15])
threading.current_thread().name = sys.argv[1]
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("words", [("list",), ("list", "--tree"), ("doctor",), ("{}", "doctor"),
                                   ("{}", "debug", "--dump"), ("{}", "tables"),
                                   ("{}", "query", "SELECT name, os_name FROM python.threads")],
                         ids=lambda words: " ".join(words).replace("{}", "PID"))
def test_names_of_processes_and_threads(words):
    with program(RENAMES, EVIL) as process:
        done = run(*(word.format(process.pid) for word in words))
        harmless(done.stdout + done.stderr)
        if words == ("list",):
            rows = json.loads(run("list", "--json").stdout)
            assert process.pid in {row["pid"] for row in rows}


def test_variables_that_tell_ranks():
    """Only numbers count; the environment is the program's word."""
    env = {"PATH": "/usr/bin:/bin", "RANK": "\x1b[31m7", "LOCAL_RANK": "9" * 400,
           "WORLD_SIZE": "-1", "SLURM_PROCID": "\n1"}
    with program("print('ready', flush=True); input()", env=env) as process:
        harmless(run("list").stdout)
        row, = (row for row in json.loads(run("list", "--json").stdout)
                if row["pid"] == process.pid)
        assert row["rank"] is None or isinstance(row["rank"], int) and row["rank"] < 1 << 31, row


def test_names_of_any_length():
    """Names of the program are cut to a bounded length."""
    code = """
import sys, threading
threading.current_thread().name = "n" * 300_000_000
exec(compile("def %s():\\n print('ready', flush=True); sys.stdin.read()\\n%s()" % (("f" * 5_000_000,) * 2),
             "p" * 100_000_000, "exec"))
"""
    with program(code) as process:
        done = run(process.pid, "debug", "--dump", "--json", timeout=60,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
        assert done.returncode == OK and len(done.stdout) < 1 << 20, done.stderr
        assert json.loads(done.stdout)["threads"]


# A program's variables about probing

def test_variables_of_the_program_are_not_ours(theirs):
    """Where its agent, library or folders are is decided by root's environment alone."""
    for name in ("agent.so", "library.so"):
        write(theirs / name, b"not a library", 0o755, USER, USER)
    env = {"PATH": str(theirs), "PROBING_AGENT": str(theirs / "agent.so"),
           "PROBING_LIBRARY": str(theirs / "library.so"), "XDG_CACHE_HOME": str(theirs),
           "XDG_STATE_HOME": str(theirs), "TMPDIR": str(theirs), "HOME": str(theirs),
           "PROBING_TARGET": "1"}
    with program("print('ready', flush=True)\nwhile True: input()", env=env) as process:
        with Openings(theirs / "agent.so", theirs / "library.so") as openings:
            done = run(process.pid, "eval", "6 * 7")
            assert (done.returncode, done.stdout) == (OK, b"42\n"), done
            assert not openings.opened()
        assert run(process.pid, "eject").returncode == OK
    assert sorted(os.listdir(theirs)) == ["agent.so", "library.so"]


def test_an_agent_that_is_a_link_to_a_socket_of_root(folder):
    """Root's command connects only to the process, and sends nothing to others."""
    code = """
import os, sys
path = "/tmp/probing-%d/agent-%d.sock" % (os.getuid(), os.getpid())
os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
os.symlink(sys.argv[1], path)
print("ready", flush=True)
input()
os.unlink(path)
"""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "root.sock"))
        listening.listen(8)
        listening.settimeout(0.1)
        with program(code, str(folder / "root.sock")) as process:
            for words in (("agent", "status"), ("eval", "--no-inject", "secret = 1")):
                done = run(process.pid, *words)
                assert done.returncode != OK and not done.stdout, done
            while True:
                try:
                    connection = listening.accept()[0]
                except socket.timeout:
                    break
                assert connection.recv(1024) == b""  # closed before a word was said
                connection.close()
            process.send(b"\n")
            assert process.wait()[0] == 0


# Files that root is given

def test_a_snapshot_names_a_file_of_root(folder, theirs):
    """Made by the other user, of a program whose code says that it comes from there."""
    secret = write(folder / "secret", SECRET, 0o600)
    with program(FRAME, str(secret)) as process:
        file = theirs / "theirs.snapshot"
        subprocess.run([support.BINARY, str(process.pid), "snapshot", "-o", str(file)], check=True,
                       stdout=subprocess.DEVNULL, **AS_USER)
    with Openings(secret) as openings:
        done = run(file, "debug", "--dump", "--source", "--json")
        assert done.returncode == OK and not sources(json.loads(done.stdout)), done
        for query in ("SELECT * FROM python.stacks", "SELECT * FROM native.symbols LIMIT 3"):
            run(file, "query", query)
        assert not openings.opened()
    assert SECRET not in done.stdout


@pytest.mark.parametrize("words", [("debug", "--dump"), ("query", "SELECT 1"), ("doctor",)],
                         ids=lambda words: words[0])
def test_a_target_that_is_a_pipe_or_device(theirs, words):
    pipe = theirs / "core"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/ptmx"):
        with Openings(path) as openings:
            done = run(path, *words, timeout=30)
            assert done.returncode != OK and not openings.opened(), done


# Served processes

def test_another_user_of_a_served_process(folder):
    """Another user has no token, finds none, and does not learn what runs there."""
    with program("print('ready', flush=True)\nwhile True: input()", user=0, group=0) as process:
        with remote.Service(process.pid) as service:
            env = dict(os.environ, HOME="/nonexistent")
            env.pop("PROBING_AUTH_TOKEN", None)
            done = subprocess.run(
                [support.BINARY, "-t", service.address, "eval", "'secret'"], env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=60, check=False, **AS_USER)
            assert done.returncode != OK and not done.stdout, done
            find = ("grep -l %s /proc/%d/environ /proc/%d/cmdline /tmp/probing-0/* "
                    "/run/user/0/probing/* 2>/dev/null" % (
                        service.token, service.server, service.server))
            assert subprocess.run(["sh", "-c", find], stdout=subprocess.PIPE, check=False,
                                  **AS_USER).stdout == b""


def test_a_served_recording(folder):
    """Names are escaped there too, and a client writes no file at the server."""
    with program(BUSY, EVIL, "burn.py") as process, remote.Service(process.pid) as service:
        done = service.run("perf", "--duration", "1")
        assert done.returncode == OK and "owned" in harmless(done.stdout + done.stderr), done
        path = folder / "there.collapsed"
        done = service.run("perf", "--duration", "0.3", "-o", path)
        assert done.returncode != OK and not path.exists(), done


# Time

STOPS_ITSELF = """
import os, signal, sys, threading, time
def child():
    while True:
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(0.003)
        os.kill(os.getppid(), signal.SIGCONT)
        time.sleep(0.003)
if os.fork() == 0:
    __import__("ctypes").CDLL(None).prctl(1, 9)
    child()
print("ready", flush=True)
while True:
    sum(range(1000))
"""


@pytest.mark.parametrize("words", [("perf", "--duration", "0.5"), ("debug", "--dump", "--native"),
                                   ("eval", "--timeout", "5", "1"), ("snapshot", "-o", "{}/s")],
                         ids=lambda words: words[0])
def test_a_program_that_stops_and_continues_itself(folder, words):
    """Every command ends, and leaves no thread stopped or traced."""
    with program(STOPS_ITSELF) as process:
        run(process.pid, *(word.format(folder) for word in words), timeout=60)
        wait_until(lambda: support.thread_status(process.pid)["TracerPid"] == "0")
        assert process.alive()


def test_a_recording_that_is_killed(folder, sticky):
    """Half a file has no name that anybody would open."""
    with program(BUSY, "burn", "burn.py") as process:
        command = subprocess.Popen([support.BINARY, str(process.pid), "perf", "--duration", "60",
                                    "-o", str(sticky / "out.collapsed")],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists("/proc/%d/fd" % command.pid))
        command.kill()
        command.wait()
    for name in os.listdir(sticky):
        assert stat.S_IMODE((sticky / name).stat().st_mode) == 0o600
    assert not (sticky / "out.collapsed").exists()


# The script of `inject --by remote-exec`, which lies where the target's user may change it

SWAPS = """
import os, sys
def hook(event, arguments):
    if event == "cpython.remote_debugger_script":
        path, = arguments
        mode = os.stat(path).st_mode
        assert not mode & 0o077, oct(mode)
        if sys.argv[1]:
            os.unlink(path)
            os.symlink(sys.argv[1], path)
        else:
            open(path, "wb").write(sys.argv[2].encode() * 1000 + b"\\n")
sys.addaudithook(hook)
print("ready", flush=True)
while True:
    pass
"""


@pytest.mark.parametrize("how", ["link", "text"])
def test_the_script_for_the_interpreter(folder, how):
    """What it says is text, and a link in its place is neither followed nor left."""
    new = [each for each in support.one_per_version((3, 14)) if each.exe.startswith("/var")]
    if not new:
        pytest.skip("no interpreter of 3.14 here that every user may run")
    secret = write(folder / "secret", SECRET, 0o600)
    before = set(os.listdir("/tmp"))
    with program(SWAPS, str(secret) if how == "link" else "", EVIL, python=new[0].exe, env=new[0].env) as process:
        done = run(process.pid, "inject", "--by", "remote-exec", "--timeout", "1")
    said = harmless(done.stderr)
    assert done.returncode and ("999" in said) == (how == "text") and "only root" not in said, done
    assert secret.read_bytes() == SECRET and not done.stdout
    assert not [each for each in set(os.listdir("/tmp")) - before if os.path.islink(os.path.join("/tmp", each))]
