# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects garbage for as long as it runs: an object that is collected does not let go."""
import gc
import sys
import threading


class Endless:
    def __init__(self):
        self.myself = self

    def __del__(self):
        started.set()
        while True:
            pass


def collect():
    Endless()
    gc.collect()


started = threading.Event()
gc.disable()
thread = threading.Thread(target=collect, name="collector")
thread.daemon = True
thread.start()
started.wait()
print("ready")
sys.stdout.flush()
sys.stdin.read()
