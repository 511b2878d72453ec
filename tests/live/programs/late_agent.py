# SPDX-License-Identifier: GPL-3.0-or-later
"""What answers like an agent, but late: late_agent.py SOCKET SECONDS THREAD, where its thread of that
name computes before each answer, for so many seconds of a processor's time, or with SECONDS 0 never answers."""
import ctypes
import os
import socket
import struct
import sys
import threading
import time

HELLO, EVAL, HELLO_REPLY, VALUE, DONE = 1, 2, 64, 67, 69
path, seconds, name = sys.argv[1], float(sys.argv[2]), sys.argv[3]


def frame(kind, request, payload):
    return struct.pack("<IHH", len(payload), kind, request) + payload


def compute():
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def answer(connection):
    while True:
        header = connection.recv(8, socket.MSG_WAITALL)
        if len(header) < 8:
            return
        length, kind, request = struct.unpack("<IHH", header)
        connection.recv(length, socket.MSG_WAITALL)
        if not seconds:
            continue
        compute()
        if kind == HELLO:
            connection.sendall(frame(HELLO_REPLY, request, b"PRBA" + struct.pack(
                "<HxxII", 1, os.getpid(), 1) + b"0\0003\0"))
        elif kind == EVAL:
            connection.sendall(frame(VALUE, request, b"42") + frame(DONE, request, struct.pack("<I", 0)))


def serve():
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME
    os.write(1, b"ready\n")
    while True:
        answer(listener.accept()[0])


listener = socket.socket(socket.AF_UNIX)
if os.path.exists(path % os.getpid()):  # of an agent that was killed, when this number was another's
    os.unlink(path % os.getpid())
listener.bind(path % os.getpid())
listener.listen(4)
thread = threading.Thread(target=serve)
thread.daemon = True
thread.start()
os.read(0, 1)
