# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs for `probing cluster` whose ranks need no torch: Python processes with the variables of a launcher."""
import contextlib
import os
import shutil
import subprocess
import tempfile

import support

# Of each run of pytest its own: others may have jobs at the same time.
ADDRESS = "10.9.%d.%d" % (os.getpid() // 256 % 256, os.getpid() % 256)

RANK = """
import sys, time
weight = int(sys.argv[1])
def train():
    step(weight)
def step(loss):
    print("ready", flush=True)
    time.sleep(1000)
train()
"""

SSH = """#!/bin/sh
# Each host is a user of this machine: it sees the processes of that user only.
while [ "$1" != -- ]; do shift; done
case $2 in
node*) user=${2#node};;
slow) exec sleep 600;;
odd*) cat %s; exit 0;;
*) echo "ssh: Could not resolve hostname $2" >&2; exit 255;;
esac
exec setpriv --reuid $user --regid $user --clear-groups sh -c "$3"
"""


def reach_hosts(folder, ssh):
    """Puts that `ssh` and a probing for its hosts into @folder; the environment in which they are found."""
    folder.chmod(0o755)
    (folder / "ssh").write_text(ssh)
    shutil.copy(support.BINARY, folder / "probing")
    for name in ("ssh", "probing"):
        (folder / name).chmod(0o755)
    return dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]), HOME=str(folder),
                PROBING_REMOTE_PROGRAM=str(folder / "probing"))


@contextlib.contextmanager
def ranks(python, count, users=(), source=RANK, **variables):
    """Starts them, each as the user at its place, and gives their list."""
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file = os.path.join(folder, "rank.py")
        with open(file, "w", encoding="utf-8") as program:
            program.write(source)
        started = []
        for rank in range(count):
            env = dict(os.environ, MASTER_ADDR=ADDRESS, MASTER_PORT="29500", RANK=str(rank),
                       LOCAL_RANK=str(rank), WORLD_SIZE=str(count), HOME="/",
                       PYTHONDONTWRITEBYTECODE="1")
            env.update(variables)
            words = [python, file, rank]
            if users and users[rank]:
                words = ["setpriv", "--reuid", users[rank], "--regid", users[rank],
                         "--clear-groups", *words]
            started.append(stack.enter_context(support.Program(words, env=env)))
        for each in started:
            assert each.line() == "ready"
        if source is RANK:
            # A rank that is not asleep yet looks different in the next round.
            for each in started:
                support.wait_for_sleep(each.pid, "nanosleep", timeout=60)
        yield started


def cluster(*words, env=None):
    return subprocess.run([support.BINARY, *map(str, words)], capture_output=True, text=True,
                          check=False, timeout=120, env=env, stdin=subprocess.DEVNULL)
