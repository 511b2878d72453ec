# SPDX-License-Identifier: GPL-3.0-or-later
"""Two call chains, 30 deep, that take turns as fast as can be: churn.py VARIANT THREADS

Frames of one chain never call frames of the other. Each chain has a file name, names and lines of its own,
so that a dump that mixes them is detected (see test_churn.py).
"""
import sys
import threading

DEPTH = 30

FUNCTION = """def {name}_{i:02d}():
    x = 1
    {name}_{next:02d}()
    return 0
"""
FUNCTION_LEAF = """def {name}_{i:02d}():
    for x in range(30):
        x += 1
    return 0
"""
GENERATOR = """def {name}_{i:02d}():
    x = 1
    for x in {name}_{next:02d}(): yield x
    x = 2
"""
DELEGATING = """def {name}_{i:02d}():
    x = 1
    yield from {name}_{next:02d}()
    x = 2
"""
GENERATOR_LEAF = """def {name}_{i:02d}():
    for x in range(3):
        yield x + 1
    x = 2
"""
METHOD = """    def m_{i:02d}(self):
        x = 1
        self.m_{next:02d}()
        return 0
"""
METHOD_LEAF = """    def m_{i:02d}(self):
        for x in range(30):
            x += 1
        return 0
"""
# One set of functions for both chains: only the lines tell them apart.
LINES = """def s_{i:02d}(p):
    if p:
        return s_{next:02d}(p) + 1
    return s_{next:02d}(p) + 2
"""
LINES_LEAF = """def s_{i:02d}(p):
    for x in range(30):
        x += 1
    return 0
"""


def made(name, each, leaf, before=""):
    parts = [each.format(name=name, i=i, next=i + 1) for i in range(DEPTH - 1)]
    text = before + "".join(parts) + leaf.format(name=name, i=DEPTH - 1)
    namespace = {}
    exec(compile(text, "<churn-%s>" % name, "exec"), namespace)
    return namespace


def functions():
    a = made("a", FUNCTION, FUNCTION_LEAF)["a_00"]
    b = made("b", FUNCTION, FUNCTION_LEAF)["b_00"]
    while True:
        a()
        b()


def generators():
    a = made("a", GENERATOR, GENERATOR_LEAF)["a_00"]
    b = made("b", DELEGATING, GENERATOR_LEAF)["b_00"]
    while True:
        for x in a():
            pass
        for x in b():
            pass


def methods():
    a = made("a", METHOD, METHOD_LEAF, "class A(object):\n")["A"]()
    b = made("b", METHOD, METHOD_LEAF, "class B(object):\n")["B"]()
    while True:
        a.m_00()
        b.m_00()


def lines():
    s = made("s", LINES, LINES_LEAF)["s_00"]
    while True:
        s(True)
        s(False)


def main():
    churn = globals()[sys.argv[1]]
    for _ in range(int(sys.argv[2]) - 1):
        thread = threading.Thread(target=churn)
        thread.daemon = True
        thread.start()
    print("ready", flush=True)
    churn()


main()
