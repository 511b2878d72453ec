# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes for tests: namespaces of processes and network of this machine, with an address each, which reach each other."""
import contextlib
import os
import subprocess
import time

NAME = "probing-%d" % os.getpid()


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)


class Node:
    """A node: `start` runs a program on it."""

    def __init__(self, stack, number):
        self.address = "10.%d.%d.%d" % (100 + os.getpid() // 256 % 100, os.getpid() % 256, number + 1)
        # The first process of a namespace: its end is that of all others.
        self.first = subprocess.Popen(["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "sleep", "1000"],
                                      stdin=subprocess.DEVNULL)
        stack.callback(self.end)
        children = "/proc/%d/task/%d/children" % (self.first.pid, self.first.pid)
        while not self.inside(children):
            assert self.first.poll() is None
            time.sleep(0.01)

    def inside(self, children):
        """The process in the namespaces, once it is there; its program is the last thing that begins."""
        with open(children, encoding="ascii") as file:
            self.pid = next(iter(file.read().split()), None)
        return self.pid and os.readlink("/proc/%s/exe" % self.pid).endswith(("sleep", "coreutils"))

    def end(self):
        self.first.kill()
        self.first.wait()

    def words(self, *words):
        return ["nsenter", "--target", self.pid, "--net", "--pid", "--mount", "--", *map(str, words)]

    def start(self, stack, words, **options):
        # What runs inside ends with what runs out here.
        process = subprocess.Popen(self.words("setpriv", "--pdeathsig", "KILL", *words), stdin=subprocess.DEVNULL, **options)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def run(self, *words):
        return subprocess.run(self.words(*words), check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def nodes(count):
    """That many, all on one bridge, which is in the first."""
    with contextlib.ExitStack() as stack:
        found = [Node(stack, number) for number in range(count)]
        first = found[0]
        for words in (["link", "add", "br0", "type", "bridge"], ["link", "set", "br0", "up"], ["link", "set", "lo", "up"],
                      ["addr", "add", first.address + "/24", "dev", "br0"]):
            assert not first.run("ip", *words).returncode, words
        for number, node in enumerate(found[1:]):
            ip("link", "add", "eth0", "netns", node.pid, "type", "veth", "peer", "name", "port%d" % number, "netns", first.pid)
            for place, words in ((first, ["link", "set", "port%d" % number, "master", "br0", "up"]),
                                 (node, ["link", "set", "lo", "up"]), (node, ["link", "set", "eth0", "up"]),
                                 (node, ["addr", "add", node.address + "/24", "dev", "eth0"])):
                assert not place.run("ip", *words).returncode, words
        yield found
