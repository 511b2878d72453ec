# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing debug --pause` as tests use it."""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import agent
import support

OPTIONS = ["debug", "--pause", "--json"]


class Pause:
    """The command, running; at its end it is killed."""

    def __init__(self, pid, *options, wait=True, env=None, binary=support.BINARY):
        self.pid = pid
        if "--within" not in options:
            options += ("--within", "30s")  # on a busy machine 2 s may be too short
        self.process = subprocess.Popen(
            [binary, "-t", str(pid)] + OPTIONS + list(options), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **(env or {})))
        if wait:
            self.begun = self.event("paused")

    def event(self, name):
        """The next event, which must come within two minutes."""
        killer = threading.Timer(120, self.process.kill)
        killer.start()
        line = self.process.stdout.readline()
        killer.cancel()
        assert line, (self.process.communicate(), self.process.returncode)
        event = json.loads(line.decode())
        assert event["event"] == name and event["pid"] == self.pid, event
        return event

    def interrupt(self):
        """Ctrl-C; the last event."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self):
        """Waits for its own end; the last event."""
        event = self.event("resumed")
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0 and not out, (self.process.returncode, out, err)
        return event

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def pause_when_free(pid):
    """A pause, once no client that has left is served any more."""
    return Pause(pid, "--within", "60s")


def reads(pid, number):
    """Whether a thread of the agent sleeps in a call with that descriptor."""
    calls = [Path("/proc/%d/task/%d/syscall" % (pid, tid)).read_text().split()
             for tid, name in agent.tasks(pid).items() if name == "probing-eval"]
    return any(call[1:2] == [hex(number)] for call in calls)


@contextlib.contextmanager
def gil_kept(process, client):
    """A call in C keeps the GIL, for as long as that lasts."""
    client.send(agent.evaluation(
        "import ctypes\nends = os.pipe()\nprint('%d %d' % ends)\n"
        "ctypes.PyDLL(None).read(ends[0], ctypes.create_string_buffer(1), 1)"))
    kind, text = client.receive()
    assert kind == agent.STDOUT, (kind, text)
    number, other = map(int, text.split())
    agent.wait_until(lambda: reads(process.pid, number))
    with open("/proc/%d/fd/%d" % (process.pid, other), "wb", buffering=0) as end:
        yield
        end.write(b"x")


def agent_holds(interpreter):
    """By the GIL; a build without one lets its world be stopped, if the function for that is found."""
    return not interpreter.free_threaded or not subprocess.run(
        [interpreter.exe, "-c", "import ctypes; ctypes.pythonapi._PyEval_StopTheWorld"],
        env=interpreter.env, stderr=subprocess.DEVNULL, check=False).returncode


def total(shared):
    return sum(shared[index] for index in range(16))


def wait_until_runs(shared):
    before = total(shared)
    agent.wait_until(lambda: total(shared) != before, 60)


def busy_seconds(pid, tid=None):
    """For how long a thread ran or waited for a processor."""
    with open("/proc/%d/task/%d/schedstat" % (pid, tid or pid), encoding="ascii") as file:
        return sum(int(word) for word in file.read().split()[:2]) / 1e9


def nobody_traced(pid):
    """Other readers of all processes also trace this one for moments: retries."""
    end = time.monotonic() + 10
    while is_traced(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def is_traced(pid):
    for tid in support.thread_ids(pid):
        try:
            status = support.thread_status(pid, tid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if status["TracerPid"] != "0" or status["State"][0] in "tT":
            return True
    return False
