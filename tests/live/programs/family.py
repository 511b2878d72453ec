# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a Python child, and a shell that starts one more; says their pids."""
import subprocess
import sys

LEAF = "print('ready'); import sys; sys.stdout.flush(); sys.stdin.read()"


def start(command):
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    return child


child = start([sys.executable, "-c", LEAF])
# The ':' keeps the shell there, as the parent of the Python that it starts.
shell = start(["/bin/sh", "-c", '"$0" -c "$1"; :', sys.executable, LEAF])
print("ready %d %d" % (child.pid, shell.pid))
sys.stdout.flush()
sys.stdin.read()
for started in (child, shell):
    started.stdin.close()
    started.wait()
