# SPDX-License-Identifier: GPL-3.0-or-later
"""Another interpreter in the process, which runs nothing; with "busy", all the time; with "threads", two of its own."""
import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

run = getattr(interpreters, "run_string", None) or interpreters.exec
try:
    other = interpreters.create(isolated=False)  # isolated ones have no threads up to 3.11
except TypeError:
    other = interpreters.create()
run(other, "name = 'application'\ncount = 41\n")
if sys.argv[1:] == ["threads"]:
    run(other, "import threading, time\nfor _ in range(2):\n    threading.Thread(target=time.sleep, args=(1000,)).start()\n")
if sys.argv[1:] == ["busy"]:
    threading.Thread(target=run, args=(other, "import time\nprint('ready', flush=True)\ntime.sleep(1000)"),
                     daemon=True).start()
else:
    print("ready", int(other), flush=True)
time.sleep(1000)
