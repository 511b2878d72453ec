# SPDX-License-Identifier: GPL-3.0-or-later
"""Code shared by the tests of injection: targets that check themselves, libraries to load into them, and
the required state of a target afterwards."""
import copy
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import support
from environment import OK, TIMEOUT

PROGRAMS = support.HERE / "programs"
RUNS = int(os.environ.get("PROBING_FAULT_RUNS", "10"))  # of each cell
PER_PROCESS = 10  # of them into one process, each with a library of its own
SLOW = os.environ.get("PROBING_FAULT_SLOW", "") not in ("", "0")  # an emulated machine
# Targets at the same time, where they do next to nothing.
SLEEPERS = 1 if SLOW else 5 if RUNS <= 10 else 2
REFUSAL_SECONDS = 2 + 10  # as promised, and slack for a busy machine
STEPS = os.environ.get("PROBING_FAULT_STEPS", "")  # a build that does something at a chosen step
MOST_STEPS = 1000  # far more than there are; a thread that cannot be used yet is stopped again, by time
AARCH64 = os.uname().machine == "aarch64"
# Kinds of fault_registers, their names in the kernel, sizes of the registers in bytes.
REGISTERS = [("neon", "asimd", ""), ("sve", "sve", ""), ("sve", "sve", "256")] if AARCH64 else [
    ("ymm", "avx", ""), ("zmm", "avx512f", "")]
REGISTERS_TOO = "x19 to x26, FPCR" if AARCH64 else "MXCSR, red zone"  # that it checks besides
COUNTS = {}  # cell -> counts of outcomes
_LOCK = threading.Lock()


def processor_has(flag):
    with open("/proc/cpuinfo", encoding="ascii") as file:
        return flag in file.read().split()


class Build:
    """Programs and libraries made for the tests."""

    compiler = ["gcc"]

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="probing-faults-"))
        self._made = {}
        self._copies = itertools.count()
        self._lock = threading.Lock()

    def program(self, name, *flags):
        """tests/live/programs/@name.c, compiled."""
        key = (name,) + flags
        with self._lock:
            if key not in self._made:
                made = self.folder / ("%s-%d" % (name, len(self._made)))
                subprocess.run(
                    [*self.compiler, "-D_GNU_SOURCE", "-O1", "-g", "-pthread", *flags, "-o",
                     made, PROGRAMS / (name + ".c")], check=True)
                self._made[key] = made
            return self._made[key]

    def library(self, *flags):
        """A library that no process has loaded yet."""
        original = self.program("fault_library", "-shared", "-fPIC", "-Wl,--build-id=none", *flags)
        copy = self.folder / ("library%d.so" % next(self._copies))
        shutil.copy(original, copy)
        return copy

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def make_root(folder, program):
    """A root folder with a program and its libraries, and nothing else."""
    listing = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    libraries = [word for word in listing.split() if word.startswith("/")]
    for path in libraries:
        place = folder / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    shutil.copy(program, folder / "program")
    (folder / "tmp").mkdir(exist_ok=True)


class Checked:
    """A target of the matrix; `with` starts it, and in the end it has to be content itself."""

    STOP, ROUNDS, ERRORS, DETAIL, SENT, RECEIVED, TOOK = range(7)

    def __init__(self, program, *arguments, before=(), **options):
        self.shared = support.Shared()
        self.target = support.Program(
            [*before, program, self.shared.path, *arguments], **options)
        assert self.target.line() == "ready"
        self.pid = self.target.pid
        self.content = True

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.finish()
        finally:
            self.target.__exit__()
            self.shared.close()

    def finish(self):
        """Tells it to end, and asks whether anything was wrong."""
        self.shared[self.STOP] = 1
        code, errors = self.target.wait()
        assert code == 0 and not self.shared[self.ERRORS], "exit %d, %d errors, detail %d: %s" % (
            code, self.shared[self.ERRORS], self.shared[self.DETAIL], errors)

    def settle(self):
        """Waits until only the tested command acts on the target."""

    def wait_for_progress(self):
        """Waits until it has made progress."""
        before, end = self.shared[self.ROUNDS], time.monotonic() + 60
        while self.shared[self.ROUNDS] <= before + 1:
            assert self.target.alive(), "died: %r" % (self.target.wait(),)
            assert time.monotonic() < end, "hangs"
            time.sleep(0.001)


class Hostile(Checked):
    """A target of another user that tries to harm the injecting user: programs/hostile.c."""

    USER = 2001

    def __init__(self, build, *words):
        os.chmod(build.folder, 0o755)
        self.shared = support.Shared()
        os.chmod(self.shared.path, 0o666)
        self.target = support.Program(
            [build.program("hostile"), self.shared.path, *words], cwd="/", preexec_fn=lambda: (
                os.setgroups([]), os.setgid(self.USER), os.setuid(self.USER)))
        assert self.target.line() == "ready"
        self.pid = self.target.pid


def read_alive(pid, read):
    """read(/proc/PID), or of another thread where the first one has ended and has nothing to show."""
    if support.thread_status(pid)["State"][0] != "Z":
        return read(Path("/proc/%d" % pid))
    while True:
        for tid in support.thread_ids(pid):
            try:
                found = read(Path("/proc/%d/task/%d" % (pid, tid)))
                if found:
                    return found
            except OSError:
                pass  # it has ended meanwhile


def list_descriptors(folder):
    """Numbers and links of descriptors."""
    found = []
    for number in os.listdir(folder / "fd"):
        try:
            found.append("%s: %s" % (number, os.readlink(folder / "fd" / number)))
        except FileNotFoundError:
            pass  # closed meanwhile
    return sorted(found)


def maps(pid):
    return read_alive(pid, lambda folder: (folder / "maps").read_text())


class Look:
    """The externally visible state of a process that injection must not change."""

    def __init__(self, pid, tids=None):
        self.pid = pid
        # A program may have a new socket each time by itself, and its malloc() has a look at that
        # file when it gives memory back.
        self.descriptors = [re.sub(r"\[\d+\]$", "", each)
                            for each in read_alive(pid, list_descriptors)
                            if not each.endswith("/vm/overcommit_memory")]
        self.threads = support.thread_ids(pid)
        status = support.thread_status(pid)
        # The first thread of a program makes the C library handle two signals of its own.
        self.signals = {key: int(status[key], 16) & ~(3 << 31)
                        for key in ("SigBlk", "SigIgn", "SigCgt")}
        self.masks = {tid: int(self._status(tid, "SigBlk"), 16) for tid in self.threads}
        self.traced = [tid for tid in self.threads if self._status(tid, "TracerPid") != "0"]
        self.stopped = [tid for tid in self.threads if self._status(tid, "State")[:1] in "Tt"]
        self.code = sorted(line.split()[0] for line in maps(pid).split("\n")
                           if re.search(r"^\S+ ..xp \S+ 00:00 0\s*$", line))

    def _status(self, tid, key):
        try:
            return support.thread_status(self.pid, tid)[key]
        except (OSError, KeyError):
            return "0"  # it has ended meanwhile

    def differences(self, before, threads=True, code=True, masks=True):
        """The changed parts. Some calls have other @masks while they wait."""
        wrong = []
        if not masks:
            before = copy.copy(before)
            before.masks, before.signals = {}, dict(before.signals, SigBlk=self.signals["SigBlk"])
        for key in (("descriptors", "signals") + (("threads",) if threads else ()) +
                    (("code",) if code else ())):
            if getattr(self, key) != getattr(before, key):
                wrong.append("%s: %r, not %r" % (key, getattr(self, key), getattr(before, key)))
        # A thread begins with all signals blocked, and unblocks them when it comes to it.
        for tid in set(self.masks) & set(before.masks) if threads else ():
            if self.masks[tid] & ~before.masks[tid]:
                wrong.append("mask of %d: %x, not %x" % (tid, self.masks[tid], before.masks[tid]))
        if self.traced or self.stopped != before.stopped:
            wrong.append("traced %r, stopped %r" % (self.traced, self.stopped))
        return wrong


def look_settled(pid, masks=True):
    """The state of a process that is not about to change: threads begin with signals blocked."""
    look = Look(pid)
    for _ in range(20):
        time.sleep(0.002)
        look, before = Look(pid), look
        if not look.differences(before, masks=masks):
            break
    return look


def wait_until_same(before, threads=True, timeout=30, masks=True):
    """The helping thread needs a moment to end."""
    end = time.monotonic() + timeout
    while wrong := Look(before.pid).differences(before, threads, masks=masks):
        assert time.monotonic() < end, wrong
        time.sleep(0.002)


def inject(pid, library, *options, env=None, timeout=60):
    """Runs the command: its exit code, its output (parsed), its messages."""
    done = subprocess.run(
        [support.BINARY, "-t", str(pid), "inject", "--json", "--library", library, *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(os.environ, **(env or {})), timeout=timeout, check=False)
    out = json.loads(done.stdout.decode()) if done.stdout else None
    return done.returncode, out, done.stderr.decode(errors="replace")


def is_mapped(pid, library):
    return str(library.name) in maps(pid)


def write_counts():
    """For the page about the matrix, if one is to be written."""
    if os.environ.get("PROBING_FAULT_COUNTS"):
        with open(os.environ["PROBING_FAULT_COUNTS"], "w", encoding="utf-8") as file:
            json.dump(COUNTS, file)


class Cell:
    """Counts the outcomes for one kind of target."""

    def __init__(self, name):
        with _LOCK:
            self.count = COUNTS.setdefault(
                name, {"runs": 0, "loaded": 0, "refused": 0, "pauses": [], "times": [],
                       "reasons": [], "passed": False})

    def passed(self):
        with _LOCK:
            self.count["passed"] = True
            write_counts()

    def run(self, what=None, err=""):
        """A run that was not timed: "loaded", "refused", or neither."""
        with _LOCK:
            self.count["runs"] += 1
            if what:
                self.count[what] += 1
            if what == "refused":
                self.count["reasons"].append(err.strip())

    def note(self, code, out, err, took):
        with _LOCK:
            self.count["runs"] += 1
            self.count["times"].append(took)
            if code == OK:
                self.count["loaded"] += 1
                self.count["pauses"] += [out["pause_us"]] if "pause_us" in out else []
            else:
                self.count["refused"] += 1
                self.count["reasons"].append(err.strip())
        if code != OK:
            assert took < REFUSAL_SECONDS, "refused after %.1f s: %s" % (took, err)
            assert err.strip(), "refused without a word"

    def assert_loaded(self):
        """Where a target can be injected, a refusal is a rare exception."""
        assert self.count["runs"]
        assert self.count["loaded"] >= 0.99 * self.count["runs"] - 0.5, self.count["reasons"]

    def assert_refused(self):
        assert self.count["runs"] and self.count["refused"] == self.count["runs"], self.count


def inject_once(cell, build, target, refusals=(TIMEOUT,), words=(), threads=True, between=None,
                library=None, settled=True, env=None, masks=True):
    """Injects a target, which must not notice. It may be refused with one of these exit codes. If the
    target is not @settled, it opens and closes descriptors and threads itself; without @masks it changes
    those, and checks them itself."""
    target.wait_for_progress()
    before, library = look_settled(target.pid, masks), library or build.library()
    if between:
        between(target)
    began = time.monotonic()
    code, out, err = inject(target.pid, library, "--symbol", "fault_touch", "--arg", "four",
                            env=env)
    cell.note(code, out, err, time.monotonic() - began)
    assert code == OK or code in refusals, (code, err)
    assert code or out["value"] == 1004
    assert not code or all(word in err for word in words), err
    target.settle()
    # A thread that stopped meanwhile may have been about to load the library, and continues with that.
    by_name = "meanwhile" not in err and (code or out["way"] == "by its path")
    assert not by_name or bool(code) != is_mapped(target.pid, library), (code, err)
    if settled:
        wait_until_same(before, threads, masks=masks)
    look = Look(target.pid)
    assert not look.traced and look.stopped == before.stopped
    assert not target.shared[target.ERRORS], target.shared[target.DETAIL]


def in_parallel(work, items, workers):
    """work(item) for each, some at a time; the first failure is raised."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


def run_cell(name, build, start, runs=RUNS, workers=1, each=inject_once, **options):
    """Injects @runs times into targets made by @start, @workers at a time, and checks each."""
    cell = Cell(name)
    size = min(PER_PROCESS, -(-runs // workers))

    def share(first):
        with start() as target:
            for _ in range(min(size, runs - first)):
                each(cell, build, target, **options)

    in_parallel(share, range(0, runs, size), workers)
    cell.passed()
    return cell


def command_at_step(step, arguments, number=signal.SIGKILL, victim=None):
    """A command that before its @step sends a signal to @victim, or else to itself."""
    env = dict(os.environ, PROBING_FAULT_STEP=str(step), PROBING_FAULT_SIGNAL=str(int(number)))
    if victim:
        env["PROBING_FAULT_PID"] = str(victim)
    return subprocess.Popen([STEPS, "-v", *arguments], env=env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def start_at_step(step, pid, library, number=signal.SIGKILL, victim=None):
    """The same, for an injecting command."""
    return command_at_step(step, ["-t", str(pid), "inject", "--library", library, "--symbol",
                                  "fault_touch"], number, victim)


def end_at_step(command, timeout=60):
    """None if the command has no such step, else its exit status and message."""
    err = command.communicate(timeout=timeout)[1].decode(errors="replace")
    return (command.returncode, err) if "this is fault step" in err else None


def at_step(step, pid, build, number=signal.SIGKILL, victim=None):
    """An injection in which a signal is sent, from begin to end."""
    return end_at_step(start_at_step(step, pid, build.library(), number, victim))
