# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocates as it is told: for each number on stdin so many rounds, which it reports. Of a round
30,000 bytes are freed at once by one function, 10,000 by another one, and 4,000 stay. A line "trace"
starts tracemalloc, "untrace" stops it, "beside N" has four threads do N rounds each, "fork" has a child do a round, "sort N" has the C library call
a function N times that keeps 4,000 bytes, "sub" another interpreter allocate 30 MB ("sub stays": and stay); with "threads" two threads allocate all the time. Runs on all versions of
Python 3."""
import os
import sys
import threading

kept = []


def heavy():
    return bytes(30000)


def light():
    return bytearray(10000)


def leak():
    kept.append(bytes(4000))


def one_round():
    heavy()
    light()
    leak()


def rounds(count):
    for _ in range(count):
        one_round()


def compare(_one, _other):
    kept.append(bytes(4000))
    return 0


def sort(count):
    """By qsort(): C code between the Python functions."""
    import ctypes
    compares = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(compare)
    numbers = (ctypes.c_int * 2)(1, 2)
    qsort = ctypes.CDLL(None).qsort
    for _ in range(count):
        qsort(numbers, 2, 4, compares)


def churn():
    while True:
        blocks = [bytes([7]) * (100 + 37 * i) for i in range(50)]
        blocks = [dict(number=i, text=str(i)) for i in range(50)] + blocks
        if any(block != bytes([7]) * len(block) for block in blocks[50:]):
            os._exit(3)


def in_child():
    pid = os.fork()
    if not pid:
        rounds(1000)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def in_another_interpreter(stays):
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    made = interpreters.create()
    interpreters.run_string(made, "for _ in range(1000): bytes(30000)")
    if not stays:
        interpreters.destroy(made)


def beside(count):
    threads = [threading.Thread(target=rounds, args=(count,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    if sys.argv[1:] == ["threads"]:
        for _ in range(2):
            thread = threading.Thread(target=churn)
            thread.daemon = True
            thread.start()
    print("ready")
    sys.stdout.flush()
    for line in sys.stdin:
        word = line.strip()
        if word == "trace":
            import tracemalloc
            tracemalloc.start()
        elif word == "untrace":
            import tracemalloc
            tracemalloc.stop()
        elif word in ("sub", "sub stays"):
            in_another_interpreter(word == "sub stays")
        elif word.startswith("sort "):
            sort(int(word[5:]))
        elif word.startswith("beside "):
            beside(int(word[7:]))
        elif word == "fork":
            word = in_child()
        else:
            rounds(int(word))
        print("did %s" % word)
        sys.stdout.flush()


main()
