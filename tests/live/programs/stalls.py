# SPDX-License-Identifier: GPL-3.0-or-later
"""Stalls: stalls.py. "busy SECONDS" computes, "hog COUNT" has the main thread hold the GIL in one long call,
while another one needs it, from the first time on; "done" follows."""
import sys
import threading
import time


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def hog(count):
    sum(range(count))


def wants_it():
    while True:
        time.sleep(0.005)


THREAD = threading.Thread(target=wants_it, name="waiter")
THREAD.daemon = True
print("ready", flush=True)
for line in sys.stdin:
    word, number = line.split()
    if word == "busy":
        busy(float(number))
    else:
        if not THREAD.is_alive():
            THREAD.start()
        hog(int(number))
    print("done", flush=True)
