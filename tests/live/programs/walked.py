# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of many kinds in a variable, a lock that is waited for, and the answers to compare."""

import collections
import sys
import threading
import time

Pair = collections.namedtuple("Pair", "left right")


class Slotted(object):
    __slots__ = ("weights", "label")

    def __init__(self):
        self.weights, self.label = [1.5, -2, 1 << 80], "n\u00e4me"

    @property
    def computed(self):
        raise SystemExit("code of the program was run")


class Lazy(object):
    def __getattr__(self, name):
        raise SystemExit("code of the program was run")


class Trainer(object):
    kind = "class attribute"

    def __init__(self):
        self.step, self.ratio, self.none, self.flag = 12, 0.25, None, True
        self.model, self.lazy = Slotted(), Lazy()
        self.table = {"a": 1, 2: "two", "nested": {"deep": [1, 2]}}
        self.pair, self.queue = Pair(1, "r"), collections.deque([3, 4, 5])
        self.type = "hidden"

    def run(self, lock):
        with lock:
            print("ready %d %d" % (id(self), id(self.model)))
            sys.stdout.flush()
            time.sleep(1000)


lock = threading.RLock()


def want():
    time.sleep(0.2)
    with lock:
        pass


thread = threading.Thread(target=want, name="wanter")
thread.daemon = True
thread.start()
Trainer().run(lock)
