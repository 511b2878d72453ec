# SPDX-License-Identifier: GPL-3.0-or-later
"""Root records a process of another user with its children, which that user chooses."""
import json
import os
import time

import pytest

import support
from environment import OK, wait_until
from files_support import (  # noqa: F401 (fixtures)
    folder, needs_root, program, run, theirs, write)
from test_later_features import EVIL, SECRET, harmless

pytestmark = needs_root

# Each mode starts children of one kind until it is killed; "kept" ones are printed on stdout.
PARENT = """
import ctypes, os, signal, subprocess, sys, time
mode, evil, secret = sys.argv[1:]
libc = ctypes.CDLL(None)
def burn():
    while True:
        sum(range(1000))
def child(work):
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    return pid
def named():
    libc.prctl(15, evil.encode()[:15], 0, 0, 0)
    os.execv(sys.executable, [evil, "-c", "while True: sum(range(1000))", evil])
def traced():
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    burn()
def undumpable():
    libc.prctl(4, 0, 0, 0, 0)
    burn()
def exec_forever():
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[0] if False else
             "import os, sys; os.execv(sys.executable, [sys.executable] + sys.orig_argv[1:])"])
def linked():
    os.execv(sys.executable, [secret, "-c", "import time\\nwhile True: sum(range(1000))"])
kept = []
if mode == "named":
    kept = [child(named) for _ in range(4)]
elif mode == "stopped":
    kept = [child(burn) for _ in range(3)]
    for pid in kept:
        os.kill(pid, signal.SIGSTOP)
elif mode == "traced":
    kept = [child(traced) for _ in range(3)]
elif mode == "undumpable":
    kept = [child(undumpable) for _ in range(3)]
elif mode == "exec":
    kept = [child(exec_forever) for _ in range(2)]
elif mode == "secret":
    kept = [child(linked) for _ in range(2)]
elif mode == "deep":
    def deeper(levels):
        if levels:
            child(lambda: deeper(levels - 1))
        burn() if not levels else time.sleep(600)
    kept = [child(lambda: deeper(20))]
print("ready", flush=True)
print(" ".join(map(str, kept)), flush=True)
while True:
    if mode == "churn":
        for pid in [child(lambda: None) for _ in range(20)]:
            os.waitpid(pid, 0)
    elif mode == "zombies":
        for _ in range(10):
            child(lambda: None)
        time.sleep(0.01)
        if len(os.listdir("/proc")) > 600:
            time.sleep(600)
    else:
        sum(range(1000))
"""


def state_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


def tracer_of(pid):
    return int(support.thread_status(pid)["TracerPid"])


@pytest.mark.parametrize("mode", ["named", "stopped", "traced", "undumpable", "exec", "secret", "deep", "churn",
                                  "zombies"])
def test_children(folder, theirs, mode):
    """The recording is made, says nothing that a terminal acts on, and leaves all as it was."""
    secret = write(folder / "secret", SECRET, 0o600)
    with program(PARENT, mode, EVIL, str(secret)) as process:
        kept = [int(pid) for pid in process.line().split()]
        try:
            made = folder / "x.profile"
            native = ["--cc"] if mode in ("named", "churn", "exec") else []
            done = run(process.pid, "perf", "--subprocesses", *native, "-d", "1s", "-o", made)
            assert done.returncode == OK, done
            harmless(done.stdout + done.stderr)
            assert SECRET.strip() not in done.stdout + done.stderr
            for ending in ("collapsed", "svg", "html"):
                other = folder / ("x." + ending)
                assert run(made, "perf", "-o", other).returncode == OK
                assert SECRET.strip() not in other.read_bytes()
            harmless((folder / "x.collapsed").read_bytes())
            result = json.loads(run(made, "perf", "--json").stdout)
            assert result["processes"][0]["pid"] == process.pid
            # Other readers of all processes also trace these for moments.
            wait_until(lambda: tracer_of(process.pid) == 0)
            assert process.alive()
            for pid in kept:
                wait_until(lambda pid=pid: mode == "traced" or tracer_of(pid) == 0)
                if mode in ("stopped", "traced"):
                    assert state_of(pid) in "Tt"
                elif mode in ("named", "undumpable", "exec", "secret"):
                    end = time.monotonic() + 20
                    while state_of(pid) not in "RS":
                        assert time.monotonic() < end
            assert os.listdir(str(theirs)) == []
        finally:
            _end_all(process.pid, kept, str(secret))


def _end_all(parent, kept, word):
    """All that the program has started, by a word of their command lines: the chain of the deep ones has no other end."""
    for pid in kept:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                if word.encode() in file.read() and int(name) != parent:
                    os.kill(int(name), 9)
        except OSError:
            pass
