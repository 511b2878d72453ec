# SPDX-License-Identifier: GPL-3.0-or-later
"""Four threads that compute: three of them wait for the GIL, if there is one."""
import sys
import threading


def compute():
    while True:
        pass


for _ in range(4):
    thread = threading.Thread(target=compute, name="worker")
    thread.daemon = True
    thread.start()
print("ready")
sys.stdout.flush()
sys.stdin.read()
