# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers as if it were the agent of another process: impostor.py KIND NAME ...

A NAME that begins with @ is abstract; PID in it becomes the number of the process that listens.
That process is a child which ends at once, so that a later process may get its number. Prints
"ready PID", then "connected", and "got CODE" for what somebody wants to have evaluated. KIND:
  speak    answers everything
  full     takes no connection, and nobody else can connect
"""
import os
import socket
import struct
import sys
import threading

HELLO, EVAL = 1, 2
HELLO_REPLY, VALUE, DONE, STATUS_REPLY = 64, 67, 69, 70
LOCK = threading.Lock()


def say(text):
    with LOCK:
        os.write(1, text.encode() + b"\n")


def frame(kind, payload, request):
    return struct.pack("<IHH", len(payload), kind, request) + payload


def receive(connection, size):
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def answer(connection):
    length, kind, request = struct.unpack("<IHH", receive(connection, 8))
    payload = receive(connection, length)
    if kind == HELLO:
        connection.sendall(frame(HELLO_REPLY, b"PRBA" + struct.pack("<HxxII", 1, 1, 3) +
                                 b"0.1.0\0" + b"3.11\0", request))
    elif kind == EVAL:
        name_length, = struct.unpack("<12xI", payload[:16])
        say("got %r" % payload[16 + name_length:])
        connection.sendall(frame(VALUE, b"'spoofed'", request))
        connection.sendall(frame(DONE, struct.pack("<I", 0), request))
    else:
        connection.sendall(frame(STATUS_REPLY, b"pid=1\nsocket=spoofed\n", request))


def serve(listener):
    while True:
        connection = listener.accept()[0]
        say("connected")
        try:
            while True:
                answer(connection)
        except (EOFError, OSError):
            connection.close()


def bind_and_listen(listener, name, backlog):
    """In a child: the kernel says then that the child listens, also when it has ended."""
    child = os.fork()
    if not child:
        name = name.replace("PID", str(os.getpid()))
        if not name.startswith("@"):
            os.makedirs(os.path.dirname(name), 0o700, exist_ok=True)
        listener.bind("\0" + name[1:] if name.startswith("@") else name)
        listener.listen(backlog)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return child


def main():
    kind, name = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX)
    child = bind_and_listen(listener, name, 0 if kind == "full" else 16)
    if kind == "full":
        first = socket.socket(socket.AF_UNIX)
        first.connect(listener.getsockname())
    else:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
    say("ready %d" % child)
    os.read(0, 1)


main()
