# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank of a job whose files of one release are kept: kept.py AGENT, which writes 200 rows and waits for the other."""
import ctypes
import os
import sys
import threading
import time

INTEGER, REAL, TEXT = 1, 2, 3
ROWS = 200


class Cell(ctypes.Structure):
    class Value(ctypes.Union):
        _fields_ = [("integer", ctypes.c_int64), ("real", ctypes.c_double), ("text", ctypes.c_char_p)]
    _anonymous_ = ("value",)
    _fields_ = [("kind", ctypes.c_uint32), ("length", ctypes.c_uint32), ("value", Value)]


def record(library):
    agent = ctypes.CDLL(library)
    agent.probing_ring_create.restype = ctypes.c_ssize_t
    agent.probing_ring_create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
    agent.probing_ring_append.argtypes = [ctypes.c_ssize_t, ctypes.c_int64, ctypes.c_void_p]
    ring = agent.probing_ring_create(b"user.losses", b"step integer, loss real [nat], phase text", 65536)
    assert ring >= 0, ring
    for step in range(ROWS):
        text = b"warm-up" if step < 10 else b"train"
        row = (Cell * 3)(Cell(INTEGER, integer=step), Cell(REAL, real=1 / (1 + step)), Cell(TEXT, len(text), text=text))
        assert agent.probing_ring_append(ring, 0, row) == 0


def spin(stop):
    while not stop.is_set():
        sum(range(1000))


def wait_for_other(lock):
    print("ready", flush=True)
    with lock:
        pass


def main():
    if len(sys.argv) > 1:
        record(sys.argv[1])
    lock, stop = threading.Lock(), threading.Event()
    if os.environ.get("RANK") == "1":
        threading.Thread(target=spin, args=(stop,), name="loader", daemon=True).start()
        print("ready", flush=True)
        time.sleep(3600)
    with lock:
        wait_for_other(lock)


main()
