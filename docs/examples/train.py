# SPDX-License-Identifier: GPL-3.0-or-later
"""A small training without libraries: two threads load samples, the main thread trains, and one saves the
model from time to time. The recordings beside this file are of it; docs/profiling.md shows them.

train.py [AUGMENTATIONS]: how often each sample is augmented; 1 if not given.
"""
import json
import os
import queue
import random
import sys
import tempfile
import threading
import time

SIZE = 400


def decode(raw):
    return [(byte * 7 + 3) % 251 / 251 for byte in raw]


def augment(sample, times):
    for _ in range(times):
        sample = [1 - value for value in reversed(sample)]
    return sample


class Loader(threading.Thread):
    def __init__(self, number, batches, times):
        super().__init__(name="loader-%d" % number, daemon=True)
        self.batches, self.times = batches, times

    def run(self):
        while True:
            samples = [augment(decode(os.urandom(SIZE)), self.times) for _ in range(8)]
            self.batches.put(samples)


class Model:
    def __init__(self):
        self.weights = [random.random() for _ in range(SIZE)]
        self.lock = threading.RLock()

    def forward(self, sample):
        return sum(weight * value for weight, value in zip(self.weights, sample))

    def backward(self, sample, loss):
        self.weights = [weight - 1e-6 * loss * value for weight, value in zip(self.weights, sample)]

    def train_step(self, batch):
        with self.lock:
            for sample in batch:
                self.backward(sample, self.forward(sample))


def save(model, folder):
    """Much too slow: it holds the lock while it writes."""
    while True:
        time.sleep(1)
        with model.lock:
            with open(os.path.join(folder, "model.json"), "w") as file:
                json.dump(model.weights, file)
            time.sleep(0.2)


def main():
    batches, model = queue.Queue(maxsize=4), Model()
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for number in range(2):
        Loader(number, batches, times).start()
    with tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=save, args=(model, folder), name="checkpoint", daemon=True).start()
        print("ready", flush=True)
        while True:
            model.train_step(batches.get())


main()
