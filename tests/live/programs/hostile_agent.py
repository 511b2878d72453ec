# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that listens where its agent would, and wants to harm its clients: hostile_agent.py KIND

  full     takes no connections
  silent   takes them, and says nothing
  deaf     greets, and reads nothing any more
  drip     answers every request by small frames for ever, one each 0.1 s
  flood    the same, as many large ones as it can
  huge     greets by a frame that is far too long
"""
import os
import socket
import struct
import sys
import threading
import time

HELLO_REPLY, STDOUT, OTHER = 64, 65, 99


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


def next_request(connection):
    length, _, request = struct.unpack("<IHH", receive(connection, 8))
    receive(connection, length)
    return request


def harm(kind, connection):
    request = next_request(connection)
    if kind == "huge":
        connection.sendall(struct.pack("<IHH", 0xfffffff0, HELLO_REPLY, request))
    if kind in ("silent", "huge"):
        time.sleep(600)
    connection.sendall(frame(HELLO_REPLY, b"PRBA" + struct.pack("<HxxII", 1, 1, 31) +
                             b"0.1.0\0" + b"3.11\0", request))
    if kind == "deaf":
        time.sleep(600)
    request = next_request(connection)
    while kind == "flood":
        connection.sendall(frame(STDOUT, b"x" * 65536, request))
    while kind == "drip":
        connection.sendall(frame(STDOUT, b"x", request) + frame(OTHER, b"x", request))
        time.sleep(0.1)


def serve(kind, listener):
    while True:
        connection = listener.accept()[0]
        try:
            harm(kind, connection)
        except (EOFError, OSError):
            connection.close()


def main():
    kind = sys.argv[1]
    folder = "/tmp/probing-%d" % os.getuid()
    path = "%s/agent-%d.sock" % (folder, os.getpid())
    listener = socket.socket(socket.AF_UNIX)
    os.makedirs(folder, 0o700, exist_ok=True)
    listener.bind(path)
    try:
        if kind == "full":
            listener.listen(0)
            first = socket.socket(socket.AF_UNIX)
            first.connect(path)
        else:
            listener.listen(16)
            threading.Thread(target=serve, args=(kind, listener), daemon=True).start()
        os.write(1, b"ready\n")
        os.read(0, 1)
    finally:
        os.unlink(path)


main()
