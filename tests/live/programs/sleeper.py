# SPDX-License-Identifier: GPL-3.0-or-later
"""Sleeps in a function with locals of several kinds; the arguments only mark the command line."""
import sys
import threading  # it knows the main thread's name

def outer(argument):
    shared = "cell"

    def sleep(text=argument):
        number, empty = 42, None
        print("ready")
        sys.stdout.flush()
        sys.stdin.read()
        return text, number, empty, shared

    return sleep()


outer("it's \x1b[31m é漢")
