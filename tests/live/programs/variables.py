# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions with variables that a prompt names; each line of stdin lets train() drop what it holds."""
import os
import threading
import weakref


class Batch(object):
    pass


def wait():
    within = "wait"
    return os.read(0, 1) and within


def train():
    loss, batch, epoch = 0.25, Batch(), "of train"
    dropped = weakref.ref(batch)
    os.write(1, b"ready\n")
    wait()
    batch = None
    os.write(1, b"kept\n" if dropped() else b"dropped\n")
    wait()
    return loss, batch, epoch


epoch = "global"
other = threading.Thread(target=len, args=("",))  # before 3.7, the GIL is made with the first thread
other.start()
other.join()
train()
