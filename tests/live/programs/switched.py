# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls body() with a Python stack of its own: switched.py LIBRARY rests|computes"""
import ctypes
import os
import sys

WAITS = os.pipe()


def inner():
    print("ready", flush=True)
    if sys.argv[2] == "rests":
        os.read(WAITS[0], 1)
    total = 0
    while True:
        total += 1


def body():
    inner()


def outer():
    call(body)


def main():
    outer()


call = ctypes.PyDLL(sys.argv[1]).call_aside
call.argtypes, call.restype = [ctypes.py_object], ctypes.py_object
main()
