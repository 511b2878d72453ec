# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of the agent's protocol, as in docs/protocol.md, and code shared by the tests of the agent."""
import json
import os
import socket
import struct
import time

HELLO, EVAL, INTERRUPT, STATUS, STOP, COMPLETE = 1, 2, 3, 4, 5, 6
HELLO_REPLY, STDOUT, STDERR, VALUE, TRACEBACK, DONE, STATUS_REPLY, STOPPED, ERROR, \
    CANDIDATES = range(64, 74)
(OK, RAISED, INTERRUPTED, NO_GIL, MAIN_NOT_REACHED, TIMED_OUT, REFUSED, FAILED, INCOMPLETE,
 EXIT) = range(10)
ON_MAIN, INTERACTIVE, LAST = 1, 2, 4


def frame(kind, payload=b"", request=1):
    return struct.pack("<IHH", len(payload), kind, request) + payload


def greeting(lowest=1, highest=1):
    return frame(HELLO, b"PRBA" + struct.pack("<HH", lowest, highest))


def evaluation(code, flags=0, start_ms=0, total_ms=0, name=b"<test>", request=1):
    return frame(EVAL, struct.pack("<IIII", flags, start_ms, total_ms, len(name)) + name +
                 code.encode(), request)


def completion(text, request=1):
    return frame(COMPLETE, struct.pack("<IIII", 0, 5000, 10000, 0) + text.encode(), request)


class Frames:
    """Frames over a connected socket, self.socket; self.rest has bytes received beyond the last frame."""

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """The next frame as (type, payload); None at the end of the connection."""
        while len(self.rest) < 8 or len(self.rest) < 8 + struct.unpack("<I", self.rest[:4])[0]:
            try:
                chunk = self.socket.recv(1 << 20)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                return None
            self.rest += chunk
        length, kind, _ = struct.unpack("<IHH", self.rest[:8])
        payload, self.rest = self.rest[8:8 + length], self.rest[8 + length:]
        return kind, payload

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()



class Client(Frames):
    """A connection to the agent of a process."""

    def __init__(self, path, greet=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.rest = b""
        if greet:
            self.send(greeting())
            kind, payload = self.receive()
            assert kind == HELLO_REPLY and payload[:4] == b"PRBA", (kind, payload)
            self.version, self.pid, self.capabilities = struct.unpack("<HxxII", payload[4:16])
            self.agent, self.python = (
                text.decode() for text in payload[16:].rstrip(b"\0").split(b"\0"))

    def until(self, kind):
        """All frames up to the first one of that type."""
        frames = [self.receive()]
        while frames[-1] and frames[-1][0] not in (kind, ERROR):
            frames.append(self.receive())
        return frames

    def evaluate(self, code, **options):
        """(outcome, {type: bytes}) of an evaluation."""
        self.send(evaluation(code, **options))
        frames = self.until(DONE)
        assert frames[-1] and frames[-1][0] == DONE, frames[-1]
        texts = {}
        for kind, payload in frames[:-1]:
            texts[kind] = texts.get(kind, b"") + payload
        return struct.unpack("<I", frames[-1][1][:4])[0], texts

    def complete(self, text):
        """The candidates for the end of a line."""
        self.send(completion(text))
        frames = self.until(DONE)
        assert frames[-1] and frames[-1] == (DONE, struct.pack("<I", OK)), frames[-1]
        return b"".join(text for kind, text in frames if kind == CANDIDATES).decode().split("\n") \
            if len(frames) > 1 else []


def tasks(pid):
    """{tid: name} of a process."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid), encoding="utf-8") as file:
                found[int(tid)] = file.read().strip()
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def ours(pid):
    """Threads of the agent, their names sorted."""
    return sorted(name for name in tasks(pid).values() if name.startswith("probing-"))


def switches(pid, tid):
    """How often a thread gave its processor away by itself: each time it was woken it does."""
    with open("/proc/%d/task/%d/status" % (pid, tid), encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("voluntary")).split()[1])


# Calls that wait, with which argument is the time limit, and its value if there is none.
NO_LIMIT = {
    "x86_64": {"7": (2, 0xffffffff), "202": (3, 0), "271": (2, 0)},  # poll, futex, ppoll
    "aarch64": {"73": (2, 0), "98": (3, 0)},  # ppoll, futex
}


def waits_for_others(pid, tid):
    """Whether a thread waits, and no time limit will wake it."""
    with open("/proc/%d/task/%d/syscall" % (pid, tid), encoding="ascii") as file:
        call, *arguments = file.read().split()
    argument, none = NO_LIMIT[os.uname().machine].get(call, (0, None))
    # An int there may have arbitrary high bits.
    return none is not None and int(arguments[argument], 16) & (none or -1) == none


def descriptors(pid):
    return sorted(int(fd) for fd in os.listdir("/proc/%d/fd" % pid))


def opened(pid):
    """The files of its descriptors, except those closed meanwhile."""
    found = []
    for fd in descriptors(pid):
        try:
            found.append(os.readlink("/proc/%d/fd/%d" % (pid, fd)))
        except FileNotFoundError:
            pass
    return found


def memory(pid):
    """Resident bytes."""
    with open("/proc/%d/statm" % pid, encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def load(probing, pid):
    """Loads the agent; the path of its socket."""
    done = probing(pid, "inject")
    assert done.code == 0, done
    status = json.loads(probing(pid, "agent", "status", "--json").out)
    assert status["pid"] == pid
    return status["socket"]
