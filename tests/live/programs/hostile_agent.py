# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that listens where its agent would, and wants to harm its clients: hostile_agent.py KIND

  full     takes no connections
  silent   takes them, and says nothing
  deaf     greets, and reads nothing any more
  mute     greets, and takes what it is asked without a word
  drip     answers every request by small frames for ever, one each 0.1 s
  freezes  the same, and each asks for the threads to be stopped
  trickle  greets and answers by one byte each 0.03 s
  flood    the same, as many large ones as it can
  huge     greets by a frame that is far too long
  wild     says that its samples of allocations are where nothing is
  random   has random ones, of every kind, and ends in order
  endless  the same, and says at each look that there are others
"""
import ctypes
import mmap
import os
import random
import socket
import struct
import sys
import threading
import time

HELLO_REPLY, STDOUT, DONE, FREEZE, OTHER = 64, 65, 69, 76, 99
INTERRUPTED, CAN_ALL = 2, 131071
WORDS, WORDS_OF_STACKS = 1 << 18, 1 << 20


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
    return request, receive(connection, length)


def with_stacks(count):
    """Records that have registers and stacks: of nowhere, of themselves, cut off."""
    words = []
    while len(words) < count:
        frames, stack = random.randrange(5), random.choice((0, 3, 14, 20, 2000, 4110, 4111))
        words += [1 | frames << 8 | random.randrange(9) << 32, 7, random.randrange(1 << 40), 4096, stack]
        words += [random.choice((0, 1, random.randrange(1 << 48))) for _ in range(2 * frames)]
        words += [random.choice((0, 1 << 63, random.randrange(1 << 47))) for _ in range(stack)]
    return struct.pack("<%dQ" % count, *words[:count])


def fill(buffer, kind, size, stacks):
    """A header and words as in agent/sites_format.h, that contradict themselves in all ways."""
    head = 0
    for round in range(1 if kind == "random" else 1 << 60):
        words = bytearray(stacks or os.urandom(8 * size))
        for at in range(0, 0 if stacks else 8 * size, 8 * 64):
            words[at:at + 8] = struct.pack("<Q", random.choice((1, 2, 1 | 40 << 8, 1 | 200 << 8, 3)))
        buffer[4096:] = bytes(words)
        head += random.choice((1, 5, size // 2, size - 400, size, 1 << 62 if round == 20 else 9))
        buffer[:80] = struct.pack("<10Q", 1, size, 65536, 1, 1 << 62, head, 1 << 63, 1, 2, 3)
        time.sleep(0.01)


def sample(kind, connection):
    request, code = next_request(connection)
    size = WORDS_OF_STACKS if len(code[code.index(b"sample\n"):].split()) > 18 else WORDS
    stacks = with_stacks(size) if size == WORDS_OF_STACKS else None
    buffer = mmap.mmap(-1, 4096 + 8 * size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    if kind == "wild":
        address = 4096 * 3
    else:
        threading.Thread(target=fill, args=(buffer, kind, size, stacks), daemon=True).start()
        time.sleep(0.2)
    connection.sendall(frame(STDOUT, b"buffer %d\n" % address, request))
    time.sleep(0.5)
    connection.sendall(frame(STDOUT, b"ended\n", request))
    next_request(connection)
    connection.sendall(frame(DONE, struct.pack("<I", INTERRUPTED), request))


def trickle(connection, data):
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(0.03)


def harm(kind, connection):
    request, _ = next_request(connection)
    if kind == "huge":
        connection.sendall(struct.pack("<IHH", 0xfffffff0, HELLO_REPLY, request))
    if kind in ("silent", "huge"):
        time.sleep(600)
    send = (lambda data: trickle(connection, data)) if kind == "trickle" else connection.sendall
    send(frame(HELLO_REPLY, b"PRBA" + struct.pack("<HxxII", 1, 1, CAN_ALL) +
                             b"0.1.0\0" + b"3.11\0", request))
    if kind in ("wild", "random", "endless"):
        sample(kind, connection)
    if kind == "deaf":
        time.sleep(600)
    request, _ = next_request(connection)
    if kind == "mute":
        time.sleep(600)
    while kind == "flood":
        connection.sendall(frame(STDOUT, b"x" * 65536, request))
    if kind == "trickle":
        trickle(connection, frame(STDOUT, b"x" * 65000, request))
    while kind == "freezes":
        connection.sendall(frame(FREEZE, bytes(20), request))
        time.sleep(0.1)
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
