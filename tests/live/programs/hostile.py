# SPDX-License-Identifier: GPL-3.0-or-later
"""Every name that can be chosen holds terminal control characters."""
import sys
import threading

EVIL = "\x1b[2J\x07\r\n\u202e\x9b31m"


def evil(started, go_on):
    started.set()
    go_on.wait()


started, go_on = threading.Event(), threading.Event()
code = compile("def f(function, *rest):\n    function(*rest)\n", "/tmp/" + EVIL + ".py", "exec")
space = {}
exec(code, space)
thread = threading.Thread(target=space["f"], args=(evil, started, go_on), name=EVIL)
thread.daemon = True
thread.start()
started.wait()
with open("/proc/self/comm", "w") as comm:
    comm.write("\x1b[2J\x07")
print("ready")
sys.stdout.flush()
sys.stdin.read()
