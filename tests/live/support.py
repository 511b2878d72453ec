# SPDX-License-Identifier: GPL-3.0-or-later
"""Code shared by the live tests: the binary, the interpreters, dumps, targets, shared memory."""

import contextlib
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BINARY = os.environ.get("PROBING_BINARY", str(ROOT / "build" / "probing"))
VERSION = (ROOT / "package/probing/_version.py").read_text().split('"')[1]
LONG = os.environ.get("PROBING_LONG", "") not in ("", "0")
# `make check`: on this machine's own Python alone, without the tests that tests/long.txt lists.
MAIN_PATH = os.environ.get("PROBING_MAIN_PATH", "") not in ("", "0")
# Names of `test-interpreters --list`, divided by commas: the tests run on these alone.
CHOSEN = [name for name in os.environ.get("PROBING_INTERPRETERS", "").split(",") if name]


def count(short, long):
    """How often to do something: @short in `make check-all`, @long in `make check-long`."""
    return long if LONG else short


class Interpreter:
    """One Python that can be a target."""

    def __init__(self, entry):
        self.name = entry["name"]
        self.exe = entry["exe"]
        self.env = dict(os.environ, **entry["env"])
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        self.env["PYTHONIOENCODING"] = "utf-8"
        self.env.pop("PYTHONSTARTUP", None)
        self.version = tuple(int(part) for part in entry["version"].split(".")[:2])
        self.full_version = entry["version"]
        self.free_threaded = entry["free_threaded"]
        self.debug_build = entry["debug_build"]
        self.chroot = entry.get("chroot")  # a root folder, and its path of the unpatched binary
        self.chroot_exe = entry.get("chroot_exe")
        self._has_ctypes = None

    def __repr__(self):
        return self.name

    @property
    def plain(self):
        """Interpreters for tests that need one ordinary interpreter: a release build with a GIL, or those
        chosen by name."""
        return bool(CHOSEN) or not (self.free_threaded or self.debug_build)

    @property
    def has_ctypes(self):
        """Builds may lack it, and those of 3.4 and 3.5 crash in it when made by a new compiler."""
        if self.version < (3, 6):
            return False
        if self._has_ctypes is None:
            test = "import ctypes; ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)()"
            self._has_ctypes = not subprocess.run(
                [self.exe, "-c", test], env=self.env, stderr=subprocess.DEVNULL, check=False
            ).returncode
        return self._has_ctypes


def _own(entries):
    """The name of the Python that runs the tests."""
    mine = os.path.realpath(sys.executable)
    return next(each["name"] for each in entries if os.path.realpath(each["exe"]) == mine)


def _all_interpreters():
    tool = ROOT / "tests" / "tools" / "test-interpreters"
    listing = subprocess.run(
        [sys.executable, str(tool), "--json"], stdout=subprocess.PIPE, check=True
    )
    entries = json.loads(listing.stdout.decode())
    if MAIN_PATH and not CHOSEN:
        CHOSEN.append(_own(entries))
    musl, others = [], []
    for entry in entries:
        if CHOSEN and entry["name"] not in CHOSEN:
            continue
        (musl if entry.get("libc") == "musl" else others).append(Interpreter(entry))
    return others, musl


# The specifics of musl have tests of their own.
INTERPRETERS, ON_MUSL = _all_interpreters()


def one_per_version(first=(3, 4), last=(3, 99), usable=lambda interpreter: True):
    """A plain build of each available version: for the longest tests."""
    chosen = {}
    for interpreter in INTERPRETERS:
        # A chosen one replaces the newest that others use too.
        fits = first <= interpreter.version <= ((3, 99) if CHOSEN and last >= (3, 13) else last)
        if interpreter.plain and usable(interpreter) and fits:
            chosen.setdefault(interpreter.version, interpreter)
    return list(chosen.values())


class DumpFailed(AssertionError):
    """The command failed: its message and exit status."""


def dump(pid, *options, timeout=120):
    """The dump of a process as Python data."""
    command = [BINARY, "-t", str(pid), "debug", "--dump", "--json"] + list(options)
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=timeout, check=False,
    )
    if done.returncode:
        raise DumpFailed(
            "%s: exit code %d: %s" % (
                " ".join(command), done.returncode, done.stderr.decode(errors="replace"))
        )
    return json.loads(done.stdout.decode())


def python_frames(thread):
    """The Python frames of a thread, innermost first."""
    return [frame for frame in thread["frames"] if frame["kind"] == "python"]


def thread_status(pid, tid=None):
    """Fields of /proc/PID/task/TID/status as text."""
    path = "/proc/%d/task/%d/status" % (pid, tid or pid)
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def catches(pid, number=signal.SIGINT):
    """True if the process handles that signal."""
    return bool(int(thread_status(pid)["SigCgt"], 16) >> (number - 1) & 1)


def sleeps_in(pid, tid, function):
    """Whether a thread is off its processor, in that function of the kernel."""
    with open("/proc/%d/task/%d/wchan" % (pid, tid), encoding="ascii") as file:
        return function in file.read()


def sleeping_in(pid, function):
    """How many threads of a process sleep there; others may end meanwhile."""
    count = 0
    for tid in thread_ids(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            count += sleeps_in(pid, tid, function)
    return count


def instance(pid):
    """How a gateway names the process that has the pid now: with its start, in clock ticks since boot."""
    with open("/proc/%d/stat" % pid, encoding="latin-1") as stat:
        return "%d-%s" % (pid, stat.read().rpartition(")")[2].split()[19])


def wait_for_sleep(pid, function, tid=None, timeout=60):
    """Until this thread, or any of the process, sleeps in that function of the kernel."""
    end = time.monotonic() + timeout
    while not (sleeps_in(pid, tid, function) if tid else sleeping_in(pid, function)):
        assert time.monotonic() < end, "%d does not sleep in %s" % (tid or pid, function)
        time.sleep(0.0001)


def wait_for_all_asleep(pid, count, function="pipe_read"):
    """Until the process has @count threads and all sleep in that function of the kernel."""
    end = time.monotonic() + 60
    while sleeping_in(pid, function) != count:
        assert time.monotonic() < end, "not all threads of %d sleep in %s" % (pid, function)
        time.sleep(0.001)


def thread_ids(pid):
    return sorted(int(tid) for tid in os.listdir("/proc/%d/task" % pid))


def children(pid):
    """Processes that a thread of it has started and not waited for; none of one that is gone."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for tid in thread_ids(pid):
            found += map(int, Path("/proc/%d/task/%d/children" % (pid, tid)).read_text(encoding="ascii").split())
    return found


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def wait_for_rest(pid, timeout=60):
    """Until all threads of a process sleep: some of those just started may not have begun to wait."""
    end = time.monotonic() + timeout
    while True:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one ends meanwhile
            if all(thread_status(pid, tid)["State"][0] == "S" for tid in thread_ids(pid)):
                return
        assert time.monotonic() < end, "threads of %d do not sleep" % pid
        time.sleep(0.001)


class Shared:
    """Numbers of 64 bits that a target and its test both see: a small file mapped by both."""

    def __init__(self, numbers=64):
        self._file = tempfile.NamedTemporaryFile(prefix="probing-shared-")
        self._file.truncate(max(4096, numbers * 8))
        self.path = self._file.name
        self._map = mmap.mmap(self._file.fileno(), 0)
        self._numbers = memoryview(self._map).cast("q")

    def __getitem__(self, index):
        return self._numbers[index]

    def __setitem__(self, index, value):
        self._numbers[index] = value

    def close(self):
        self._numbers.release()
        self._map.close()
        self._file.close()


class Program:
    """A command started as a target; killed at the end of the `with` block, with what it has started if it is
    given a session of its own.

    A line on its stdout says that it is ready."""

    def __init__(self, command, **options):
        self._session = options.get("start_new_session")
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, **options)
        self.pid = self._process.pid
        self._printed = b""

    def line(self, timeout=60):
        """The next line that the target printed; fails with its stderr if it ended."""
        while b"\n" not in self._printed:
            if not select.select([self._process.stdout], [], [], timeout)[0]:
                raise AssertionError("target %d printed nothing for %d s" % (self.pid, timeout))
            chunk = os.read(self._process.stdout.fileno(), 1 << 20)
            if not chunk:
                self._process.wait()
                raise AssertionError(
                    "target ended with %d: %s" % (self._process.returncode, self.errors())
                )
            self._printed += chunk
        line, _, self._printed = self._printed.partition(b"\n")
        return line.decode()

    def send(self, data):
        """Writes to its stdin."""
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def errors(self, last=4000):
        """The end of its stderr."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-last:]

    def alive(self):
        return self._process.poll() is None

    def wait(self):
        """Waits for its own end; its exit status and stderr."""
        self._process.communicate(timeout=120)
        return self._process.returncode, self.errors()

    def kill(self):
        """Ends it, and waits until it has."""
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """A child that outlives it may keep its stdout: that is closed, not read to its end."""
        if self._session:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        elif self.alive():
            self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.__exit__(None, None, None)
        self._errors.close()


class Target(Program):
    """A Python program started as a target."""

    def __init__(self, interpreter, script, *arguments, options=(), pass_fds=(), env=None):
        super().__init__([interpreter.exe, *options, script, *arguments],
                         env=dict(interpreter.env, **(env or {})), pass_fds=pass_fds)


def report(line):
    """A line for the summary at the end of the test run."""
    REPORTED.append(line)


REPORTED = []
