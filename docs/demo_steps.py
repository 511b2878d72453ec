# SPDX-License-Identifier: GPL-3.0-or-later
"""A program to step through: epochs of a tiny model, and a thread that waits for work."""

import queue
import threading
import time


class Model:
    def __init__(self):
        self.weight = 0.5

    def forward(self, batch):
        total = self.weight * batch[0]
        total += self.weight * batch[1]
        return total

    def learn(self, loss):
        self.weight *= 0.5 if loss > 1 else 2


def epoch(model, batches):
    for batch in batches:
        loss = model.forward(batch)
        model.learn(loss)
    return loss


def save(jobs):
    while True:
        jobs.get()


def main():
    jobs, model = queue.Queue(), Model()
    threading.Thread(target=save, args=(jobs,), name="saver", daemon=True).start()
    print("ready", flush=True)
    while True:
        epoch(model, [[1, 2], [3, 4]])
        time.sleep(0.01)


main()
