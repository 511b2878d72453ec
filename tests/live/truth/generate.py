# SPDX-License-Identifier: GPL-3.0-or-later
"""Random Python programs that call leaf() at the end of long, winding call chains.

    python generate.py SEED 3.12        prints one

The same seed and version always give the same program. Each construct takes an expression that
calls the rest of the chain and returns an expression that calls the construct; both use global
names only, so that they can be combined in any order.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import callbacks
import classes
import control
import generators
from expressions import WORDS, Expressions

PRELUDE = '''\
import contextlib, functools, itertools, operator, os, re, signal, sys, threading, weakref

class Chain(object):
    def __init__(self, value):
        self.value = value
    def add(self, value):
        return Chain(self.value + value)

def run(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value

def compiled(source, file, mode="exec", lines=0):
    code = compile("\\n" * lines + source, file, mode)
    learn_qualnames(code)
    return code

def main_thread():
    return threading.current_thread() is threading.main_thread()
'''

FILES = ["<string>", "<größe 🎈>", "", "/no/such/файл.py", "<" + "x" * 300 + ">", "a\\nb", "ÿ.py"]


class Program(Expressions):
    """One program being made."""

    def __init__(self, seed, version):
        self.rng = random.Random("%s %s" % (seed, version))
        self.version = version
        self.blocks = []
        self.count = 0
        self.long_gap = self.rng.random() < 0.08

    # Building blocks of constructs

    def name(self, prefix="f"):
        """A name that occurs nowhere else in the program."""
        self.count += 1
        draw = self.rng.random()
        if draw < 0.6:
            return "%s_%d" % (prefix, self.count)
        return "%s_%s_%d" % (prefix, self.rng.choice(WORDS), self.count)

    def gap(self, indent):
        """Lines without code."""
        draw = self.rng.random()
        if draw < 0.7:
            return ""
        if draw < 0.95:
            return "%s# %s\n" % (indent, self.text()) * self.rng.randrange(1, 5)
        if self.long_gap:
            self.long_gap = False
            return "\n" * self.rng.choice([32768, 65536, 70000])
        return "\n" * self.rng.choice([126, 127, 128, 200, 254, 255, 256, 300, 600])

    def noise(self, indent):
        """Statements that do nothing, and sometimes a leaf of their own."""
        draw = self.rng.random()
        if draw < 0.4:
            return self.gap(indent)
        if draw < 0.5:
            return "%sleaf()\n" % indent
        if draw < 0.55:
            return "%sassert leaf(%s1), %s\n" % (indent, self.newline(), self.literal())
        if draw < 0.7:
            return "%s%s = 0; %s\n" % (indent, self.rng.choice(WORDS), self.literal())
        if draw < 0.8:
            return "%sfor _ in range(3):\n%s    pass\n" % (indent, indent)
        if draw < 0.9:
            return "%sif not True:\n%s    leaf()\n" % (indent, indent)
        return "%sglobals()['unused'] = [%s,%s2]\n" % (indent, self.literal(), self.newline())

    def block(self, template, **parts):
        """Adds a definition at the top level; {name} in @template are replaced by @parts."""
        for key, value in parts.items():
            template = template.replace("{%s}" % key, value)
        self.blocks.append(template)

    def body(self, call, indent, result="return 1"):
        """A function's body: @call in a random statement, noise around it."""
        form = self.rng.choice(control.STATEMENTS)
        while form.since > self.version:
            form = self.rng.choice(control.STATEMENTS)
        text = self.noise(indent) + form(self, call, indent)
        text += self.noise(indent) if self.rng.random() < 0.5 else ""
        return text + (indent + result + "\n" if result else "")

    # The whole

    def chain(self, depth):
        """An expression that runs through @depth constructs down to leaf()."""
        call, used = "leaf()", set()
        for _ in range(depth):
            construct = self.rng.choice(CONSTRUCTS)
            while construct.since > self.version or construct in used:
                construct = self.rng.choice(CONSTRUCTS)
            if construct.once:
                used.add(construct)
            call = construct(self, call)
        return call

    def root(self, depth):
        call = self.chain(depth)
        name = self.name("root")
        self.block("def {name}():\n{body}\n", name=name, body=self.body(call, "    "))
        return name

    def text_of(self, threads):
        roots = [self.root(self.rng.randrange(4, 14)) for _ in range(threads)]
        last = "start([%s])\nfor _ in rounds():\n%s    %s\n" % (
            ", ".join(roots[1:]), self.gap("    "), self.wrap("%s()" % roots[0]))
        return "%s\n%s\n%s" % (PRELUDE, "\n".join(self.blocks), last)


CONSTRUCTS = control.CONSTRUCTS + classes.CONSTRUCTS + generators.CONSTRUCTS + callbacks.CONSTRUCTS


def generate(seed, version, threads=3):
    """The text of a program that runs on @version, (3, 12), and needs @threads threads."""
    return Program(seed, version).text_of(threads)


if __name__ == "__main__":
    print(generate(sys.argv[1], tuple(int(part) for part in sys.argv[2].split("."))))
