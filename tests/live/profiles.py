# SPDX-License-Identifier: GPL-3.0-or-later
"""Code shared by tests of recordings: running the command, and its output."""
import contextlib
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time

import support

PROGRAM = support.HERE / "programs" / "profiled.py"


def busy(target):
    """A program that works for ten minutes, beside two idle threads."""
    process = target("profiled.py", 2)
    process.send(b"go 600\n")
    return process


class Recording:
    """`probing PID perf` in the background; it ends by itself or by Ctrl-C."""

    def __init__(self, pid, *options):
        self._process = subprocess.Popen(
            [support.BINARY, str(pid), "perf", *map(str, options)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self._process.pid

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def kill(self):
        self._process.kill()

    def end(self, timeout=120):
        """(exit code, stdout, stderr) when it has ended."""
        out, err = self._process.communicate(timeout=timeout)
        return self._process.returncode, out.decode(), err.decode()

    def result(self):
        code, out, err = self.end()
        assert code == 0, err
        return json.loads(out)

    def samples(self):
        samples(self._process)

    def until_taken(self, file, count):
        """Ends it when its file has that many samples on a processor; its output."""
        end = time.monotonic() + support.count(120, 1800)
        while taken(file) < count:
            assert time.monotonic() < end and self._process.poll() is None, (taken(file), self.end())
            time.sleep(0.1)
        self.interrupt()
        code, out, err = self.end()
        assert code == 0 and not err, (code, err)
        return out


def samples(process):
    """Waits until a command samples: then its waiting shows it."""
    end = time.monotonic() + support.count(60, 120)
    while "hrtimer_nanosleep" not in wchan(process.pid):
        assert time.monotonic() < end and process.poll() is None, process.communicate()
        time.sleep(0.001)


def wchan(pid):
    try:
        with open("/proc/%d/wchan" % pid, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def told(file, query):
    """The data of a recording in progress, once available: the file may be busy, or missing yet."""
    try:
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % file, uri=True)) as database:
            return (database.execute(query).fetchone() or (0,))[0]
    except sqlite3.OperationalError:
        return 0


def taken(file):
    """How many samples of threads on a processor are in a recording that is written."""
    return told(file, "SELECT sum(samples) FROM totals JOIN states USING (state) "
                      "WHERE name = 'on a processor'") or 0


def repeated(record, is_good):
    """The first good result of record(): on a busy machine a short recording has few samples, or none."""
    for _ in range(30):
        found = record()
        if is_good(found):
            break
    return found


def has_samples(text):
    """Whether a command that recorded a process which runs says that it has stopped it a few times."""
    found = re.search(r"^cost: (\d+) stops?", text, re.M)
    return found and int(found[1]) > 2


@contextlib.contextmanager
def tracer_of(pid):
    """Another process that traces the main thread, as a debugger does, and lets it run; gives its pid."""
    tracer = subprocess.Popen(
        [sys.executable, "-c",
         "import ctypes, sys\n"
         "libc = ctypes.CDLL(None)\n"
         "while libc.ptrace(0x4206, int(sys.argv[1]), None, None): pass\n"
         "print('seized', flush=True)\n"
         "sys.stdin.read()\n", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert tracer.stdout.readline() == b"seized\n"
        yield tracer.pid
    finally:
        tracer.communicate()


def profile(pid, *options):
    """The result of a whole recording."""
    return Recording(pid, "--json", *options).result()


def counted(pid, tid=None, what=0):
    """Nanoseconds that a thread had a processor, or (1) waited for one, as the kernel counts."""
    with open("/proc/%d/task/%d/schedstat" % (pid, tid or pid), encoding="ascii") as file:
        return int(file.read().split()[what])


def readable(result):
    """True if all could be read, except for moments in which another tool traced the thread: tests in
    parallel read all processes, and a busy machine prolongs that."""
    return result["cost"]["unreadable"] <= 2 + 0.005 * result["cost"]["times"]


def shares(result):
    """Percent of the weight that each function has with all that it calls."""
    return {row["func"].rpartition(".")[2]: 100 * row["total_ns"] / result["weight_ns"]
            for row in result["functions"]}
