# SPDX-License-Identifier: GPL-3.0-or-later
"""Another interpreter in the process, which runs nothing, or with an argument all the time."""
import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

run = getattr(interpreters, "run_string", None) or interpreters.exec
other = interpreters.create()
run(other, "name = 'application'\ncount = 41\n")
if len(sys.argv) > 1:
    threading.Thread(target=run, args=(other, "import time\nprint('ready', flush=True)\ntime.sleep(1000)"),
                     daemon=True).start()
else:
    print("ready", int(other), flush=True)
time.sleep(1000)
