# SPDX-License-Identifier: GPL-3.0-or-later
"""ARGV: agent/trace/breaks.py, a seed, how many programs. Each is random, and asked at random places which of its
lines can still run: prints those that ran and were not among them."""
import ast
import random
import sys

NAMES = "ahead_of", "jumps", "handlers", "alive", "lines_of", "ENDS", "OF_FUNCTION"
Code = type((lambda: 0).__code__)
with open(sys.argv[1], "rb") as file:
    tree = ast.parse(file.read().decode("utf-8"))
tree.body = [each for each in tree.body if getattr(each, "name", None) in NAMES or
             isinstance(each, ast.Assign) and getattr(each.targets[0], "id", None) in NAMES]
assert len(tree.body) == len(NAMES)
module = __import__  # the agent's, without its cache
exec(compile(tree, "breaks.py", "exec"), globals())
rand = random.Random(int(sys.argv[2]))


def block(depth, loop):
    """Lines of statements."""
    lines = []
    for _ in range(rand.randint(1, 3)):
        lines += statement(depth, loop)
    return lines


def inner(depth, loop=False):
    return ["    " + line for line in block(depth - 1, loop)]


def statement(depth, loop):
    kind = rand.choice(["mark", "set", "raise", "def"] + ["if", "for", "while", "try", "finally", "with", "class"] * (depth > 0) +
                       ["break", "continue"] * loop)
    if kind == "mark":
        return ["mark()"]
    if kind == "raise":
        return ["if flip():", "    raise KeyError(1)"]
    if kind == "def":
        return ["def f():", "    return 1", "f()"]
    if kind == "if":
        return ["if flip():"] + inner(depth, loop) + ["else:"] + inner(depth, loop)
    if kind == "for":
        return ["for i in range(rand.randint(0, 3)):"] + inner(depth, True) + ["else:"] + inner(depth)
    if kind == "while":
        return ["k = 0", "while k < 3 and flip():", "    k += 1"] + inner(depth, True)
    if kind == "try":
        return ["try:"] + inner(depth, loop) + ["except KeyError:"] + inner(depth, loop) + ["else:"] + inner(depth, loop)
    if kind == "finally":
        return ["try:"] + inner(depth) + ["finally:"] + inner(depth)
    if kind == "with":
        return ["with Manager():"] + inner(depth, loop)
    if kind == "class":
        return ["class C:"] + ["    x = 1", "    def method(self):", "        return 2"] + ["C().method()"]
    if kind in ("break", "continue"):
        return ["if flip():", "    " + kind]
    return ["a = 1"]


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return flip()


def flip():
    return rand.random() < 0.5


asked, wrong, marks = [], [], 0


def mark():
    global marks
    frame, marks = sys._getframe(1), marks + 1
    found = alive(frame.f_code, ahead_of(frame.f_code, frame.f_lasti))
    asked.append({(code, line) for code, lines in found for line in lines})


def trace(frame, event, _):
    if frame.f_code.co_filename != "random.py":
        return None
    # What every call begins with is no place to stop at.
    if event == "line" and frame.f_lineno in lines_of(frame.f_code):
        for lines in asked:
            if (frame.f_code, frame.f_lineno) not in lines:
                wrong.append(frame.f_lineno)
    return trace


for number in range(int(sys.argv[3])):
    text = "\n".join(["mark()"] + block(3, False) + ["mark()", "a = 2"]) + "\n"
    del asked[:]
    sys.settrace(trace)
    try:
        exec(compile(text, "random.py", "exec"), {"mark": mark, "flip": flip, "Manager": Manager, "rand": rand})
    except KeyError:
        pass
    finally:
        sys.settrace(None)
    if wrong:
        print(text, sorted(set(wrong)))
        break
print("%d programs, %d marks, %d wrong" % (number + 1, marks, len(wrong)))
