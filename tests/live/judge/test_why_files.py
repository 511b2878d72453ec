# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why` of snapshots and bundles of one of several processes; and semaphores that have names."""
import ctypes
import json
import os
import subprocess

import hangs
import support
from environment import wait_until
from test_why import running

NOTHING = 0
WAITS_FOR_CHILD = "import subprocess\nprint(flush=True)\nsubprocess.run(['sleep', '1000'])"
SLEEPS = "import time\nprint(flush=True)\ntime.sleep(1000)"
NAMED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.sem_open.restype = ctypes.c_void_p
semaphore = ctypes.c_void_p(libc.sem_open(b"%s", 0o100, 0o600, 0))
print(flush=True)
libc.sem_wait(semaphore)
print("posted", flush=True)
"""


def why(target, code=NOTHING):
    done = subprocess.run([support.BINARY, "why", "--json", str(target)], stdout=subprocess.PIPE, check=False)
    assert done.returncode == code, done
    return json.loads(done.stdout)["targets"]


def idle(pid, seconds=0.1):
    return (support.dump(pid)["threads"][0]["idle_seconds"] or 0) > seconds


def test_a_snapshot_of_who_waits_for_another(tmp_path):
    """The other process is not in the file: that nothing is wrong is a guess. Who sleeps needs nobody."""
    for source, confidence in (WAITS_FOR_CHILD, "low"), (SLEEPS, "medium"):
        with running(source) as program:
            wait_until(lambda pid=program.pid: idle(pid))
            file = tmp_path / (confidence + ".probing")
            subprocess.run([support.BINARY, "snapshot", str(program.pid), "-o", file], check=True)
        judged, = why(file)
        assert (judged["verdict"], judged["confidence"]) == ("nothing", confidence), judged


def test_a_bundle(tmp_path):
    """Each of its processes is judged."""
    source = hangs.PROCESSES["Process.join"]
    path, _ = hangs.write(tmp_path, source)
    file = tmp_path / "hung.probing"
    subprocess.run([support.BINARY, "run", "--hang", "1s", "--grace", "1s", "-o", file, "--", "/usr/bin/python3", path],
                   env=hangs.environment(), stderr=subprocess.DEVNULL, check=False)
    judged = why(file)
    assert len(judged) == 2 and all(one["file"].startswith(str(file) + "/") for one in judged), judged


def test_a_semaphore_with_a_name():
    """Whoever knows the name can post it, and does."""
    name = b"/probing-test-%d" % os.getpid()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.sem_open.restype = ctypes.c_void_p
    with running(NAMED % name.decode()) as program:
        wait_until(lambda: idle(program.pid, 6))
        judged, = why(program.pid)
        semaphore = ctypes.c_void_p(libc.sem_open(name, 0))
        libc.sem_unlink(name)
        libc.sem_post(semaphore)
        assert program.line() == "posted"
    assert judged["verdict"] == "nothing", judged
