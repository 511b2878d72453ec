# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits in a process of many threads."""
import json
import os
import signal

import support
from environment import OK

CHILDREN = """
import os, subprocess, threading
rest = threading.Event()
def start():
    children.append(subprocess.Popen(["sleep", "1000"]))
    started.set()
    rest.wait()
children = [subprocess.Popen(["sleep", "1000"])]
for _ in range(400):
    threading.Thread(target=rest.wait, daemon=True).start()
started = threading.Event()
threading.Thread(target=start, daemon=True).start()
started.wait()
print(*(child.pid for child in children), flush=True)
os.wait()
"""


def test_children_of_late_threads(probing, newest):
    """A child of the last of 400 threads is among the children that the process waits for."""
    with support.Program([newest.exe, "-c", CHILDREN], env=newest.env) as process:
        children = [int(word) for word in process.line().split()]
        try:
            support.wait_for_sleep(process.pid, "do_wait", process.pid)
            done = probing(process.pid, "debug", "--dump", "--json")
            assert done.code == OK, done
            main, = [thread for thread in json.loads(done.out)["threads"] if thread["tid"] == process.pid]
            assert "any of 2 children" in json.dumps(main), main
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
