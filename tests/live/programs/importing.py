# SPDX-License-Identifier: GPL-3.0-or-later
"""The main thread imports MODULE, which waits in its finder or its top level as long as number 0 of the shared
file is 0, while another thread counts in number 1 of it. WHERE is "top", "finder", or "later": in its finder, once
number 2 is not 0."""
import importlib.machinery
import mmap
import sys
import threading
import time

with open(sys.argv[1], "r+b") as file:
    shared = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
module, where = sys.argv[2:]


def wait():
    if where != "later":
        print("ready", flush=True)
    while not shared[0]:
        time.sleep(0.001)


class Loader:
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, _):
        return None

    def exec_module(self, made):
        wait()
        if self.loader:
            self.loader.exec_module(made)


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != module:
            return None
        if where in ("finder", "later"):
            wait()
        found = importlib.machinery.PathFinder.find_spec(name, path)
        return importlib.machinery.ModuleSpec(name, Loader(found and found.loader)) if where == "top" else found


def beside():
    while True:
        shared[1] += 1
        time.sleep(0.001)


threading.Thread(target=beside, daemon=True).start()
sys.modules.pop(module, None)
sys.meta_path.insert(0, Finder)
if where == "later":
    print("ready", flush=True)
    while not shared[2]:
        time.sleep(0.001)
try:
    __import__(module)
except ImportError:
    pass
while True:
    time.sleep(0.01)
