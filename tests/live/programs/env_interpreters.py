# SPDX-License-Identifier: GPL-3.0-or-later
"""Interpreters made by Python itself (3.8+), each run by a thread of the main one."""
import os
import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

CODE = """
import os
def inside_%d():
    os.write(%d, b"x")
    os.read(%d, 2)
inside_%d()
"""


def run(code):
    # Up to 3.12 it runs with the thread state of the thread that makes it.
    interpreters.run_string(interpreters.create(), code)


for number in (1, 2):
    ours, theirs = os.pipe()
    wait, _ = os.pipe()
    code = CODE % (number, theirs, wait, number)
    threading.Thread(target=run, args=(code,), daemon=True, name="runs-%d" % number).start()
    os.read(ours, 1)
print("ready")
sys.stdout.flush()
sys.stdin.read()
os._exit(0)
