# SPDX-License-Identifier: GPL-3.0-or-later
"""A busy thread whose functions, files and own name hold terminal control characters. Python 3.8+."""
import ctypes
import threading

EVIL = "\x1b]0;owned\x07\x1b[2J\u202eevil\x9b31m"


def busy():
    while True:
        sum(range(100))


def named(function):
    code = function.__code__.replace(co_name=EVIL, co_filename="/" + EVIL + ".py")
    if hasattr(code, "co_qualname"):
        code = code.replace(co_qualname=EVIL)
    function.__code__ = code
    return function


def main():
    ctypes.CDLL(None).prctl(15, b"\x1b[2Jcomm", 0, 0, 0)
    thread = threading.Thread(target=named(busy), name=EVIL, daemon=True)
    thread.start()
    print("ready", flush=True)
    thread.join()


main()
