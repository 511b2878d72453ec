# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a generated program, dumps it at each of its leaves and compares frame by frame."""

import json
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import generate
import support

FILE_NAMES = ["program.py", "größe.py", "🎈 party.py", "日本.py", "x" * 180 + ".py"]
RECORDER = str(HERE / "recorder.py")


class Wrong(AssertionError):
    """A frame that differs between the dump and Python itself."""


class Count:
    """Counts of checks."""

    def __init__(self):
        self.frames = self.dumps = self.stacks = self.unstable = self.no_qualname = 0

    def add(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def _difference(truth, frame):
    """The difference of @frame, or None."""
    name, qualname, file, line, position = truth
    # Python 3.15.2 contradicts itself where lines go back far: its f_lineno is then too large by
    # this, its co_positions() of the same instruction is what the code was compiled from.
    if position and position[0] and line - position[0] == 0x10000:
        line = position[0]
    told = (frame["func"], frame["file"], frame["line"])
    if told != (name, file, line):
        return "func, file, line: %r, not %r" % (told, (name, file, line))
    if qualname is not None and frame["qualname"] is not None and frame["qualname"] != qualname:
        return "qualname: %r, not %r" % (frame["qualname"], qualname)
    if position is not None:
        told = [frame["line"], frame["end_line"], frame["col"], frame["end_col"]]
        if told != position:
            return "line, end_line, col, end_col: %r, not %r" % (told, position)
        if frame["qualname"] is None:
            return "qualname: none, not %r" % qualname
    return None


def _without_recorder(frames):
    """The frames outside leaf(): they do not move."""
    for i, frame in enumerate(frames):
        if frame["file"] == RECORDER and frame["func"] == "leaf":
            return frames[i + 1:]
    return None


def compare(record, thread, options, count):
    """Compares one thread of a dump with the thread's own record."""
    stack, read = record["stack"], thread["read"]
    frames = support.python_frames(thread)
    unstable = read == "unstable"
    if record["how"] == "blocked" and read != "idle" and "--freeze" not in options:
        raise Wrong("a blocked thread was read as %s" % read)
    if unstable and "--nonblocking" not in options:
        raise Wrong("read as unstable in the default mode")
    outer = _without_recorder(frames)
    if outer is None:
        if not unstable:
            raise Wrong("leaf() is not on the stack: %r" % [f["func"] for f in frames])
        outer = frames
    if len(outer) > len(stack) or (len(outer) < len(stack) and not unstable):
        raise Wrong("%d frames, not %d:\n%r\n%r" % (
            len(outer), len(stack), [f["func"] for f in outer], [t[0] for t in stack]))
    for depth, (truth, frame) in enumerate(zip(reversed(stack), reversed(outer))):
        wrong = _difference(truth, frame)
        if wrong:
            raise Wrong("frame %d from the outermost (%s, read %s): %s" % (
                depth, frame["func"], read, wrong))
        count.no_qualname += frame["qualname"] is None
    if thread["name"] != record["name"]:
        raise Wrong("thread name: %r, not %r" % (thread["name"], record["name"]))
    count.frames += len(outer)
    count.stacks += 1
    count.unstable += unstable


class Run:
    """One program in one interpreter."""

    def __init__(self, interpreter, seed, rounds, threads=3, options=()):
        self.interpreter, self.seed, self.rounds = interpreter, seed, rounds
        self.threads, self.python_options = threads, options
        self.count = Count()

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="probing-truth-")
        name = FILE_NAMES[self.seed % len(FILE_NAMES)]
        self.path = os.path.join(self._folder.name, name)
        text = generate.generate(self.seed, self.interpreter.version, self.threads)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("HAS_CTYPES, TRACING = %r, %r\n%s" % (
                self.interpreter.has_ctypes, self._can_trace(), text))
        self.shared = support.Shared()
        self._fifos = []
        for index in range(self.threads):
            fifo = "%s.%d" % (self.shared.path, index)
            os.mkfifo(fifo)
            self._fifos.append((fifo, os.open(fifo, os.O_RDWR)))
        self.target = support.Target(
            self.interpreter, RECORDER, self.path, self.shared.path, ",".join(self.rounds),
            options=self.python_options, env={"LC_ALL": "C.UTF-8"})
        return self

    def _can_trace(self):
        """Debug builds from 3.12 on stop with an assertion when they trace steps of many lines."""
        return not self.interpreter.debug_build or self.interpreter.version < (3, 12)

    def __exit__(self, *error):
        self.target.__exit__(*error)
        for fifo, fd in self._fifos:
            os.close(fd)
            os.unlink(fifo)
        self.shared.close()
        self._folder.cleanup()

    def _collect(self, waiting):
        """One record of each thread that still runs; None for those that ended."""
        records = {}
        while waiting - set(records):
            line = json.loads(self.target.line())
            if "failed" in line:
                raise RuntimeError("the generated program failed: " + line["failed"])
            records[line["thread"]] = None if "end" in line else line
        return records

    def _release(self, index):
        self.shared[index] += 1
        os.write(self._fifos[index][1], b"x")

    def check(self, modes):
        """Runs to the end, with the options of @modes in turn."""
        alive, records, step = set(range(self.threads)), {}, 0
        while alive:
            records.update(self._collect(alive - set(records)))
            alive -= {index for index, record in records.items() if record is None}
            records = {index: records[index] for index in alive}
            if alive:
                self._check_once(records, modes[step % len(modes)])
                step += 1
            for index in alive:
                self._release(index)
            records = {}
        return self.count

    def _check_once(self, records, options):
        for record in records.values():
            if record["how"] == "blocked":
                support.wait_for_sleep(self.target.pid, "pipe_read", record["tid"])
        dump = support.dump(self.target.pid, *options)
        by_tid = {thread["tid"]: thread for thread in dump["threads"]}
        self.count.dumps += 1
        for record in records.values():
            try:
                if record["tid"] not in by_tid:
                    raise Wrong("thread %d is not in the dump" % record["tid"])
                compare(record, by_tid[record["tid"]], options, self.count)
            except Wrong as error:
                raise Wrong("%s, seed %d, %s, options %s: %s" % (
                    self.interpreter, self.seed, record["how"], " ".join(options) or "none",
                    error)) from None
