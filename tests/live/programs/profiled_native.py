# SPDX-License-Identifier: GPL-3.0-or-later
"""Python that calls C that measures itself: profiled_native.py LIBRARY. Orders come on stdin:

"go SECONDS" makes it use a processor for so long, and print each function's part of that, in milliseconds;
"churn SECONDS" makes it run through chains of calls, of Python and C in turn, which never mix; "threads
SECONDS" makes 16 threads run in C.
"""
import ctypes
import sys
import threading
import time

library = ctypes.CDLL(sys.argv[1])
LEAF = ctypes.CFUNCTYPE(None)
for name in ("native_short", "native_long", "native_churn"):
    getattr(library, name).argtypes = [ctypes.c_double]
    getattr(library, name).restype = None
for name in ("left_0", "right_0"):
    getattr(library, name).argtypes = [LEAF]
    getattr(library, name).restype = None
clock = time.thread_time
spent = {"native_short": 0.0, "native_long": 0.0, "in_python": 0.0}


def in_python(seconds):
    end = clock() + seconds
    while clock() < end:
        sum(range(100))


def work(seconds):
    end = clock() + seconds
    while clock() < end:
        for function, name, time_of_it in ((library.native_short, "native_short", 0.005),
                                           (library.native_long, "native_long", 0.010),
                                           (in_python, "in_python", 0.005)):
            begin = clock()
            function(time_of_it)
            spent[name] += clock() - begin
    print(" ".join("%s %.3f" % (name, 1000 * spent[name]) for name in sorted(spent)), flush=True)


def py_left_3():
    return [number for number in range(3)]


def py_left_2():
    py_left_3()


@LEAF
def py_left_1():
    py_left_2()


def py_left_0():
    library.left_0(py_left_1)


def py_right_3():
    return [number for number in range(3)]


def py_right_2():
    py_right_3()


@LEAF
def py_right_1():
    py_right_2()


def py_right_0():
    library.right_0(py_right_1)


def churn(seconds):
    end = clock() + seconds
    while clock() < end:
        for _ in range(100):  # the clock is a system call, at which a thread is caught more often
            py_left_0()
            py_right_0()
    print("done", flush=True)


def main():
    never = threading.Event()
    threading.Thread(target=never.wait, name="idle", daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        order, seconds = line.split()
        if order == "go":
            work(float(seconds))
        elif order == "churn":
            churn(float(seconds))
        elif order == "threads":
            library.native_threads(16, ctypes.c_double(float(seconds)))


main()
