# SPDX-License-Identifier: GPL-3.0-or-later
"""A process of another user that seems to have an agent; its argument chooses its first action.

It is run by `python -c`, since that user may not be able to read this file."""
import ctypes
import fcntl
import mmap
import os
import socket
import struct
import sys
import threading

FOLDER = "/tmp/probing-%d" % os.getuid()
MINE = []
# Terminal control sequences: a title, the clearing of the screen, a bell, a change of direction.
EVIL = b"\x1b]0;owned\x07\x1b[2J\xe2\x80\xae\xc2\x9b31m"
REPLY = [b"version=1\n"]


def path_of(name):
    MINE.append("%s/%s" % (FOLDER, name))
    return MINE[-1]


def serve_file(server, content):
    """A file as a server has it that runs: with its lock held."""
    file = open(path_of("serve-%d-%d" % (os.getpid(), server)), "wb", buffering=0)
    file.write(content)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def map_agent():
    """A mapping that has the name of the agent's library."""
    file = os.memfd_create("libprobing-agent.so")
    os.truncate(file, 4096)
    return mmap.mmap(file, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)


def frames(connection):
    """The types and numbers of the requests of a client."""
    rest = b""
    while True:
        chunk = connection.recv(4096)
        if not chunk:
            return
        rest += chunk
        while len(rest) >= 8 and len(rest) >= 8 + struct.unpack("<I", rest[:4])[0]:
            length, kind, request = struct.unpack("<IHH", rest[:8])
            rest = rest[8 + length:]
            yield kind, request


def answer(connection):
    hello = b"PRBA" + struct.pack("<HxxII", 1, os.getpid(), 1) + b"1\0" + b"3\0"
    for kind, request in frames(connection):
        kind, payload = (64, hello) if kind == 1 else (70, b"".join(REPLY))
        connection.sendall(struct.pack("<IHH", len(payload), kind, request) + payload)


def accept(listener):
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


os.makedirs(FOLDER, 0o700, exist_ok=True)
ctypes.CDLL(None).prctl(4, 1)  # dumpable: it only became this user
kept = [map_agent()]
exec(sys.argv[1])
listener = socket.socket(socket.AF_UNIX)
listener.bind(path_of("agent-%d.sock" % os.getpid()))
listener.listen(8)
threading.Thread(target=accept, args=(listener,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
for path in MINE:
    os.unlink(path)
