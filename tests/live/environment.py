# SPDX-License-Identifier: GPL-3.0-or-later
"""Odd surroundings of a Python process, for the tests that read it there.

What runs is mostly programs/env_target.py; assert_read() knows what a dump of it has to say."""
import functools
import os
import pwd
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import support

OK, FAILED, USAGE, UNSUPPORTED, PERMISSION, TIMEOUT, NO_PROCESS = range(7)
PROGRAMS = Path(__file__).resolve().parent / "programs"
SCRIPT = PROGRAMS / "env_target.py"
ONE_EACH = pytest.mark.parametrize("interpreter", support.one_per_version(), ids=repr)


def line_of(text):
    """The number of the one line of env_target.py that has this text in it."""
    numbers = [number for number, line in enumerate(SCRIPT.read_text("utf-8").split("\n"), 1)
               if text in line]
    assert len(numbers) == 1, (text, numbers)
    return numbers[0]


def outline(thread, count=2):
    """The innermost Python frames as (function, file name, line)."""
    return [(frame["func"], os.path.basename(frame["file"]), frame["line"])
            for frame in support.python_frames(thread)[:count]]


def assert_read(found, busy=False, reads=("idle",)):
    """A dump of env_target.py that has everything right; gives its threads by name."""
    threads = {thread["name"]: thread for thread in found["threads"]}
    assert sorted(threads) == ["MainThread", "waiter"] + ["worker"] * busy, found
    file = SCRIPT.name
    assert outline(threads["MainThread"]) == [
        ("rest", file, line_of("the main thread rests here")), ("main", file, line_of("  rest()"))]
    assert outline(threads["waiter"], 1) == [("wait_for", file, line_of("waiter waits here"))]
    for name in ("MainThread", "waiter"):
        assert threads[name]["read"] in reads, threads[name]
    for name, thread in threads.items():
        assert thread["error"] is None or name == "worker" and thread["read"] == "unstable", thread
        assert python(thread)[-1] == ("<module>" if name == "MainThread" else "_bootstrap")
    if busy:
        worker = threads["worker"]
        assert worker["read"] in ("stopped", "unstable") and python(worker)[0] == "compute", worker
    return threads


def python(thread):
    """Names of the functions of a thread, innermost first."""
    return [frame["func"] for frame in support.python_frames(thread)]


def process_state(pid):
    """State letter and tracer of all threads."""
    return {tid: (status["State"][0], status["TracerPid"])
            for tid in support.thread_ids(pid) for status in [support.thread_status(pid, tid)]}


def assert_untouched(pid, states="RSD"):
    """Other readers of all processes also trace this one for moments: retries."""
    end = time.monotonic() + 10
    while True:
        touched = {tid: each for tid, each in process_state(pid).items() if each[0] not in states or each[1] != "0"}
        if not touched:
            return
        assert time.monotonic() < end, touched
        time.sleep(0.001)


def child_of(pid):
    """The only process at the end of the chain of children that begins with @pid."""
    while True:
        children = support.children(pid)
        if not children:
            return pid
        pid, = children


class Started(support.Program):
    """A command that runs a Python program, itself or as its only child: .python is its pid.

    It has started when @rest of its threads sleep."""

    def __init__(self, command, rest=2, **options):
        self.python = None
        super().__init__(command, **options)
        try:
            line = self.line().split()
            assert line[:1] == ["ready"], line
            self.inner_pid = int(line[1]) if len(line) > 1 else None
            self.python = child_of(self.pid)
            settle(self.python, rest)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *ignored):
        if self.python and self.alive():
            try:
                os.kill(self.python, signal.SIGKILL)
            except ProcessLookupError:
                pass
        super().__exit__(*ignored)


def resting(pid):
    """The threads of a process that sleep, with how often and how long each has run."""
    threads = {}
    for tid in support.thread_ids(pid):
        try:
            if support.thread_status(pid, tid)["State"][0] == "S":
                with open("/proc/%d/task/%d/schedstat" % (pid, tid), encoding="ascii") as file:
                    threads[tid] = file.read()
        except (FileNotFoundError, ProcessLookupError):
            pass
    return threads


def settle(pid, count=2):
    """Waits until @count threads have slept for a while: they came to where they stay."""
    def settled():
        before = resting(pid)
        time.sleep(0.02)
        after = resting(pid)
        return len(set(before.items()) & set(after.items())) >= count

    wait_until(settled)


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def runs(*command, env=None):
    """Whether a command can be run here and succeeds."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=env, timeout=60,
                              check=False).returncode == 0
    except OSError:
        return False


def needs(reason, *command):
    """A mark: skips unless this command succeeds."""
    return pytest.mark.skipif(not runs(*command), reason=reason)


def user_name():
    """Our own name; None where /etc/passwd does not know us."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None


def need(*programs):
    """Skips the test if one of these programs is not installed."""
    for program in programs:
        if not shutil.which(program):
            pytest.skip("%s is not installed" % program)


def other_tmp(*more):
    """Shell words that mount a folder in place of /tmp, in which a checkout below /tmp is still seen."""
    places = {os.path.realpath(each) for each in (support.ROOT, os.path.dirname(support.BINARY))}
    seen = ["mkdir -p /mnt%s && mount --rbind %s /mnt%s" % (each[len("/tmp"):], each, each[len("/tmp"):])
            for each in sorted(places) if each.startswith("/tmp/")]
    return " && ".join(["mount -t tmpfs -o mode=1777 none /mnt", *seen, "mount --move /mnt /tmp", *more,
                        'exec "$@"'])


# Interpreters that were moved or changed

@functools.lru_cache(maxsize=None)
def parts(interpreter):
    """The executable, the libpython or None, and the prefix."""
    code = ("import sys\n"
            "lines = [line.split() for line in open('/proc/self/maps')]\n"
            "paths = set(line[5] for line in lines if len(line) > 5 and '/libpython' in line[5])\n"
            "print(sys.prefix)\n"
            "print(''.join(paths))\n")
    told = subprocess.run([interpreter.exe, "-c", code], env=interpreter.env, check=True,
                          stdout=subprocess.PIPE).stdout.decode().split("\n")
    return os.path.realpath(interpreter.exe), told[1] or None, told[0]


class Copy:
    """A copy of an interpreter's binaries; `holder` is the file that contains the interpreter."""

    def __init__(self, interpreter, folder, change=None):
        exe, library, prefix = parts(interpreter)
        self.folder = Path(folder)
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / "lib").mkdir(parents=True)
        self.exe = Path(shutil.copy(exe, str(self.folder / "bin")))
        self.env = dict(interpreter.env)
        self.env.setdefault("PYTHONHOME", prefix)
        self.holder = self.exe
        if library:
            self.holder = Path(shutil.copy(library, str(self.folder / "lib")))
            self.env["LD_LIBRARY_PATH"] = str(self.folder / "lib")
        if change:
            change(self.holder)

    def start(self, busy=False, before=(), script=SCRIPT, **options):
        env = dict(self.env, **({"BUSY": "1"} if busy else {}))
        process = Started([*before, self.exe, script], env=env, **options)
        with open("/proc/%d/maps" % process.python, encoding="utf-8") as maps:
            assert str(self.holder) in maps.read()
        return process


def strip(path):
    """Removes the symbols, `.symtab` and all debug information."""
    subprocess.run(["strip", "--strip-all", str(path)], check=True)


def drop_section_headers(path):
    """Removes the section headers and all that no segment holds, as sstrip does."""
    data = bytearray(path.read_bytes())
    assert data[:6] == b"\x7fELF\x02\x01"
    at, = struct.unpack_from("<Q", data, 32)
    count, = struct.unpack_from("<H", data, 56)
    end = 0
    for i in range(count):
        offset, size = struct.unpack_from("<Q16xQ", data, at + 56 * i + 8)
        end = max(end, offset + size)
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 64, 0, 0)
    path.write_bytes(data[:end])


# Programs of C with Python inside

@functools.lru_cache(maxsize=None)
def build_folder():
    return tempfile.TemporaryDirectory(prefix="probing-environment-")


def build(program, name, *words, optional=False):
    """Compiles programs/PROGRAM; with @optional gives None if that fails."""
    target = Path(build_folder().name) / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-O1", "-g", "-o", target, PROGRAMS / program, *words]
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        if optional and done.returncode:
            return None
        assert not done.returncode, done.stderr.decode()
    return target


@functools.lru_cache(maxsize=None)
def libraries(interpreter):
    """The interpreter's shared and its static library; None where it has none."""
    _, shared, prefix = parts(interpreter)
    version = "%d.%d" % interpreter.version
    places = sorted(Path(prefix).glob("lib/python%s*/config*/libpython%s*.a" % (version, version)))
    places += sorted(Path(prefix).glob("lib/libpython%s*.a" % version))
    plain = [place for place in places if "pic" not in place.name]
    return shared, plain[0] if plain else None


def embed(interpreter, program, static=False):
    """Links a program of C with an interpreter: the executable and its environment."""
    shared, archive = libraries(interpreter)
    _, _, prefix = parts(interpreter)
    env = dict(interpreter.env, PYTHONHOME=interpreter.env.get("PYTHONHOME", prefix))
    library = archive if static else shared
    if not library:
        pytest.skip("%s has no %s library" % (interpreter, "static" if static else "shared"))
    name = "%s-%s/%s" % (interpreter, "static" if static else "shared", "myserver")
    if static:
        if interpreter.version < (3, 5):
            pytest.skip("threading needs an extension module there, and that needs symbols")
        words = [library, "-lm", "-ldl", "-lutil", "-lpthread", "-lz"]
    else:
        words = [library, "-lpthread", "-Wl,-rpath," + os.path.dirname(shared)]
        env["LD_LIBRARY_PATH"] = os.path.dirname(shared)
    target = build(program, Path(program).stem + "/" + name, *words, optional=static)
    if not target:
        pytest.skip("the static library of %s needs libraries that are not here" % interpreter)
    return target, env
