# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing run`: the program is as without it, and what is ended is its own tree."""
import fcntl
import json
import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import termios
from pathlib import Path

import pytest

import hangs
import packages
import support
from terminal import Terminal, environment

PYTHON = "/usr/bin/python3"
USAGE, NOT_RUNNABLE, HUNG, NOT_FOUND = 2, 126, 124, 127
QUICK = ("--hang", "1s", "--grace", "1s")

# What a program can see of how it was started.
SELF = r"""
import json, os, resource, signal
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
names = ("SigIgn", "SigBlk", "SigPnd", "ShdPnd", "TracerPid", "Seccomp", "NoNewPrivs", "CapEff", "Umask")
print(json.dumps({
    "status": {name: status.get(name) for name in names},
    "group": os.getpgrp(), "session": os.getsid(0), "environ": dict(os.environ), "cwd": os.getcwd(),
    "limits": [resource.getrlimit(limit) for limit in range(16)],
    "files": [[fd, os.readlink("/proc/self/fd/" + fd)] for fd in sorted(os.listdir("/proc/self/fd"))[:-1]],
    "nice": os.nice(0), "affinity": sorted(os.sched_getaffinity(0)),
    "agent": "probing" in open("/proc/self/maps").read(),
}))
"""
# A tree that no SIGTERM ends: with a child in a session of its own, and one whose parent has ended.
STUBBORN = r"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def note():
    with open(sys.argv[1], "a") as file:
        file.write("%d\n" % os.getpid())
note()
if not os.fork():
    os.setsid()
    note()
    if not os.fork():
        note()
    else:
        os._exit(0)
while True:
    time.sleep(1000)
"""


def run(*words, options=QUICK, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("env", hangs.environment())
    return subprocess.run([support.BINARY, "run", *options, "--", *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False, **more)


class Run(hangs.Background):
    """The command in the background."""

    def __init__(self, folder, *words, options=QUICK):
        super().__init__(support.BINARY, "run", *options, "--", *map(str, words), cwd=folder,
                         env=hangs.environment(), stdin=subprocess.DEVNULL)


def exists(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("script, code", [
    ("exit 0", 0), ("exit 7", 7), ("exit 124", 124), ("kill -KILL $$", 137), ("kill -TERM $$", 143),
    ("kill -SEGV $$", 139), ("kill -INT $$", -signal.SIGINT)])
def test_exit_codes(script, code):
    done = run("/bin/sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def test_programs_that_cannot_be_run(tmp_path):
    done = run("/no/such/program")
    assert done.returncode == NOT_FOUND and b"cannot run '/no/such/program'" in done.stderr
    assert run(tmp_path).returncode == NOT_RUNNABLE
    assert run(options=()).returncode == USAGE
    assert subprocess.run([support.BINARY, "run"], stderr=subprocess.PIPE, check=False).returncode == USAGE


def test_input_and_output_are_the_programs():
    done = run("/bin/sh", "-c", "cat; echo error >&2", stdin=None, input=b"passed\0through\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"passed\0through\n", b"error\n")


def ignore():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])


@pytest.mark.parametrize("before", [None, ignore])
def test_it_sees_no_difference(before):
    words = [PYTHON, "-c", SELF]
    plain = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=hangs.environment(), preexec_fn=before, check=True, timeout=60)
    ours = run(*words, preexec_fn=before)
    assert ours.returncode == 0, ours
    seen = [json.loads(each.stdout) for each in (plain, ours)]
    for each in seen:  # a pipe has another number each time
        each["files"] = [(fd, link.partition("[")[0]) for fd, link in each["files"]]
    assert seen[0] == seen[1] and not seen[0]["agent"]


def test_it_is_not_touched(tmp_path):
    """Until it hangs, nobody traces it or has its memory open."""
    with Run(tmp_path, PYTHON, "-uc", "import os, signal; print(os.getpid()); signal.pause()",
             options=("--hang", "60s")) as program:
        pid = int(program.line())
        assert support.thread_status(pid)["TracerPid"] == "0"
        assert "probing" not in Path("/proc/%d/maps" % pid).read_text(encoding="utf-8")
        files = [os.readlink(path) for path in Path("/proc/%d/fd" % program.process.pid).iterdir()]
        assert not [path for path in files if path.startswith("/proc/")]
        os.kill(pid, signal.SIGKILL)
        assert program.end()[0] == 137


@pytest.mark.parametrize("number, name", [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")])
def test_a_signal_is_reported_and_passed_on(number, name, tmp_path):
    code = "import os, signal, sys\nsignal.signal(%d, lambda *_: sys.exit(3))\nprint(os.getpid(), flush=True)\n" \
        "signal.pause()" % number
    with Run(tmp_path, PYTHON, "-c", code) as program:
        support.wait_for_rest(int(program.line()))
        program.process.send_signal(number)
        status, _, text = program.end()
        assert status == 3 and "asked to end by " + name in text and "<string>:4" in text, text


def test_sigterm_ends_what_does_not_catch_it(tmp_path):
    with Run(tmp_path, PYTHON, "-c", "import os, signal; print(os.getpid(), flush=True); signal.pause()") as program:
        support.wait_for_rest(int(program.line()))
        program.process.send_signal(signal.SIGTERM)
        status, _, text = program.end()
        assert status == 143 and "asked to end by SIGTERM" in text and "pause: any signal" in text, text


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT])
def test_other_signals_are_passed_on(number, tmp_path):
    code = "import signal, sys\nsignal.signal(%d, lambda *_: sys.exit(4))\nprint(flush=True)\nsignal.pause()" % number
    with Run(tmp_path, PYTHON, "-c", code) as program:
        program.line()
        program.process.send_signal(number)
        assert program.end()[::2] == (4, "")


def test_the_whole_tree_is_ended_and_nobody_else(tmp_path):
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN)
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        done = run(PYTHON, script, tmp_path / "pids", options=("--timeout", "2s", "--grace", "1s"), cwd=tmp_path)
        pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
        assert done.returncode == HUNG and len(pids) == 3, done
        assert not [pid for pid in pids if exists(pid)]
        assert stranger.poll() is None
        stranger.kill()


def test_it_is_asked_before_it_is_killed(tmp_path):
    code = ("import signal, sys, threading\n"
            "signal.signal(signal.SIGTERM, lambda *_: (print('cleaned up', flush=True), sys.exit(5)))\n"
            "l = threading.Lock()\nl.acquire()\nl.acquire()")
    done = run(PYTHON, "-c", code, options=("--hang", "1s", "--grace", "60s"), cwd=tmp_path)
    assert done.returncode == HUNG and done.stdout == b"cleaned up\n", done


def test_a_child_that_stays_when_the_program_ends():
    """As without the command: nobody waits for it, and nobody ends it."""
    done = run("/bin/sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
    pid = int(done.stdout)
    assert done.returncode == 0 and exists(pid)
    os.kill(pid, signal.SIGKILL)


def test_nobody_reads_the_report(tmp_path):
    """As `2>&1 | head -1` and collectors that close early: the program is ended all the same."""
    source = ("import signal, threading\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
              "print(__import__('os').getpid(), flush=True)\n"
              "threading.Event().wait()")
    with subprocess.Popen([support.BINARY, "run", "--hang", "1s", "--grace", "0.1s", "--", PYTHON, "-c", source], cwd=tmp_path,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=hangs.environment()) as process:
        pid = int(process.stdout.readline())
        process.stdout.close()
        process.stderr.close()
        assert process.wait(timeout=60) == HUNG
        assert not exists(pid)


def test_the_program_keeps_its_sigpipe():
    words = ["grep", "SigIgn", "/proc/self/status"]  # Python itself ignores that signal
    assert run(*words).stdout == subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout


def test_keep(tmp_path):
    code = "import threading, time\ne = threading.Event()\nprint(flush=True)\ne.wait()"
    with Run(tmp_path, PYTHON, "-c", code, options=("--hang", "1s", "--keep")) as program:
        program.line()
        assert select.select([program.process.stderr], [], [], 60)[0]
        assert program.process.stderr.readline().startswith(b"probing: nothing has moved for ")
        program.process.send_signal(signal.SIGTERM)
        assert program.end()[0] == 143


def test_many_processes_are_at_most_sixty_lines(tmp_path):
    code = ("import os, threading\nfor _ in range(12):\n    if not os.fork():\n        break\n"
            "def deep(n):\n    deep(n - 1) if n else threading.Event().wait()\n"
            "for n in range(8):\n    threading.Thread(target=deep, args=(n,)).start()\ndeep(30)")
    done = run(PYTHON, "-c", code, cwd=tmp_path)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == HUNG and 40 < len(lines) <= 60, done
    assert any("more lines of stacks: the bundle has them" in line for line in lines)
    assert "13 processes" in lines[0] and lines[-1].startswith("saved "), lines
    bundle = lines[-1].split()[1].rstrip(":")
    shown = subprocess.run([support.BINARY, bundle, "dump"], cwd=tmp_path, stdout=subprocess.PIPE, check=True)
    assert b"13:[" in shown.stdout and b"deep" in shown.stdout


@pytest.mark.parametrize("options", [(), ("--redact",)])
def test_what_is_saved(options, tmp_path):
    code = "import threading\nsecret = 'hunter' + '2'\nthreading.Event().wait()"
    done = run(PYTHON, "-c", code, options=(*QUICK, *options, "-o", "made.probing"), cwd=tmp_path)
    assert done.returncode == HUNG and b"made.probing: 1 process" in done.stderr, done
    assert os.stat(tmp_path / "made.probing").st_mode & 0o777 == 0o600
    shown = subprocess.run([support.BINARY, "made.probing", "dump", "--locals"], cwd=tmp_path, stdout=subprocess.PIPE,
                           check=True)
    assert b"Event.wait" in shown.stdout and (b"hunter2" in shown.stdout) == (not options), shown


AWAITS = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import waiting
async def work():
    await waiting.until(asyncio.get_running_loop().create_future())
async def main():
    await asyncio.gather(*(work() for _ in range(3)))
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
"""
NURSERY = """
import trio
async def work(event):
    await event.wait()
async def main():
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(work, trio.Event())
trio.run(main)
"""


def test_tasks_are_at_lines_of_the_program(tmp_path):
    """A library that awaits for it is not where it hangs."""
    library = tmp_path / "lib" / "python3" / "site-packages"
    library.mkdir(parents=True)
    (library / "waiting.py").write_text("async def until(future):\n    await future\n")
    (tmp_path / "hung.py").write_text(AWAITS)
    done = run(PYTHON, tmp_path / "hung.py", library, cwd=tmp_path)
    assert done.returncode == HUNG
    assert "\n  task        work hung.py:6 waits for Future   (3 of them)\n" in done.stderr.decode(), done.stderr.decode()


def test_tasks_of_trio(tmp_path):
    (tmp_path / "hung.py").write_text(NURSERY)
    done = run(packages.need("trio"), tmp_path / "hung.py", cwd=tmp_path)
    assert "\n  task        work hung.py:4 waits for Event.wait   (3 of them)\n" in done.stderr.decode(), done.stderr.decode()


def test_a_place_that_cannot_be_written(tmp_path):
    """The verdict is there, and the program ends."""
    done = run(PYTHON, "-c", "import threading\nthreading.Event().wait()",
               options=(*QUICK, "-o", "/no/such/folder/made"), cwd=tmp_path)
    assert done.returncode == HUNG and b"<string>:2" in done.stderr and b"/no/such/folder" in done.stderr, done


def test_other_programs_are_named(tmp_path):
    """A shell that waits for a program that reads a pipe."""
    done = run("/bin/sh", "-c", "mkfifo f; exec 3<>f; cat <&3; exit 0", cwd=tmp_path)
    text = done.stderr.decode()
    assert done.returncode == HUNG and "in wait4: child " in text and "read: pipe 0" in text, text


def test_ctrl_c_is_the_programs():
    # Not input(): readline loses a signal that comes while it begins.
    code = "import sys\ntry:\n    print('ready')\n    sys.stdin.readline()\nexcept KeyboardInterrupt:\n    print('interrupted')"
    with Terminal("run", "--", PYTHON, "-c", code) as terminal:
        terminal.until("ready")
        terminal.send("\x03")
        text, status = terminal.end()
        assert "interrupted" in text and "asked to end" not in text and status == 0, text


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_job_control(tmp_path):
    """Ctrl-Z stops both, `fg` continues both, and the time between is no hang."""
    shell = Terminal.__new__(Terminal)
    code = "import os\nprint('rea' + 'dy', os.getpid())\nprint('read', input())"
    (tmp_path / "program.py").write_text(code)
    start(shell, tmp_path)
    with shell:
        shell.send("%s run --hang 2s -- %s program.py\n" % (shlex.quote(str(support.BINARY)), PYTHON))
        shell.until("ready ")
        pid = int(shell.until("\n"))
        shell.send("\x1a")
        shell.until("Stopped")
        assert support.thread_status(pid)["State"][0] == "T"
        shell.send("fg\n")
        shell.until("program.py")
        shell.send("words\n")
        shell.until("read words")
        shell.send("echo status $?; exit\n")
        shell.until("status 0")


def start(shell, folder):
    """An interactive shell on a terminal of its own."""
    shell.leader, follower = pty.openpty()
    shell.printed = b""
    shell.process = subprocess.Popen(
        ["bash", "--norc", "-i"], stdin=follower, stdout=follower, stderr=follower, cwd=folder, env=environment(),
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(follower)
