# SPDX-License-Identifier: GPL-3.0-or-later
"""A target for measuring: THREADS sleeping threads, each DEPTH frames deep, whose variables are objects
with attributes; the main thread, too. A path of five steps leads from `self`."""

import sys
import threading
import time


class Part:
    def __init__(self, depth):
        self.name, self.rate, self.sizes = "part-%d" % depth, 0.1 * depth, list(range(20))
        self.options = {"depth": depth, "frozen": False}
        self.inner = Part(depth - 1) if depth else None


class Trainer:
    def __init__(self):
        self.model, self.step, self.losses = Part(6), 12, [0.5] * 100

    def forward(self, batch, depth):
        part, label = self.model, "depth %d" % depth
        if depth > 1:
            return self.forward(batch, depth - 1)
        time.sleep(3600)
        return part, label


def main():
    threads, depth = int(sys.argv[1]), int(sys.argv[2])
    batch = [Part(0) for _ in range(8)]
    for _ in range(threads - 1):
        threading.Thread(target=Trainer().forward, args=(batch, depth - 3), daemon=True).start()
    print("ready", flush=True)
    Trainer().forward(batch, depth - 2)


main()
