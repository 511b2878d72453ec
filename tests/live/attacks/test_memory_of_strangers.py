# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks of another user's process on root's `memory`, tables of torch and `perf --torch`: names for the
terminal, classes that imitate torch's, tables and buffers that claim to be huge."""
import json
import os
import resource
import subprocess

import pytest

import support
from environment import OK, PERMISSION
from files_support import AS_USER, PYTHON, needs_root, program, run

pytestmark = needs_root
# Terminal control characters.
EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\t\r"
MEMORY = 2 << 30  # that the command may have

NAMES = """
import sys, types
EVIL = sys.argv[1]
torch = types.ModuleType("torch.nn.modules.module")
class Module(object):
    def __init__(self):
        self._modules, self._parameters, self._buffers, self.training = {}, {}, {}, True
Module.__module__ = "torch.nn.modules.module"
class Optimizer(object):
    pass
Optimizer.__module__ = "torch.optim.optimizer"
Evil = type(EVIL, (Module,), {})
def forward(self):
    while True:
        sum(range(1000))
Evil.forward = forward
model = Evil()
model._modules[EVIL] = model._modules["again"] = model
model._modules["deep"] = at = Evil()
for i in range(400):
    at._modules[EVIL * 20] = at = Evil()
at._modules["up"] = model
model._modules["none"] = None
model._modules["number"] = 7
model._parameters[EVIL] = object()
model._parameters[7] = EVIL
optimizer = type(EVIL, (Optimizer,), {})()
optimizer.param_groups = optimizer
optimizer.state = {1: {"step": -7}}
held = {EVIL: [EVIL + str(i) for i in range(1000)]}
setattr(sys.modules["__main__"], EVIL, [held])
print("ready", flush=True)
model.forward()
"""

HUGE = """
import ctypes, gc, mmap, sys, time
gc.disable()  # it would walk through what is poked
WORD = ctypes.c_uint64
def poke(address, value):
    WORD.from_address(address).value = value
# Memory without end in which all that is read is zero.
room = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
start = ctypes.addressof(ctypes.c_char.from_buffer(room))
class Thing(object):
    pass
lists = [[1, 2, 3] for _ in range(300)]
for each in lists:
    poke(id(each) + 16, 1 << 35)  # items
    poke(id(each) + 24, start)
    poke(id(each) + 32, 1 << 35)  # room
texts = ["text %d" % i for i in range(300)]
for each in texts:
    poke(id(each) + 16, 1 << 39)  # length
arrays = [bytearray(10) for _ in range(300)]
for each in arrays:
    poke(id(each) + 24, 1 << 39)
    poke(id(each) + 32, start)
numbers = [{i: i for i in range(10)} for _ in range(100)]
for each in numbers:
    keys = WORD.from_address(id(each) + 32).value
    poke(keys + 24, 1 << 31)  # entries
sys.stdout.write("ready\\n")
sys.stdout.flush()
time.sleep(600)
"""


# Arenas of malloc() that lead to nowhere, round, or through blocks of all sizes.
HEAPS = """
import ctypes, mmap, random, struct, sys, time
HEAP, COUNT = 64 << 20, 6
room = mmap.mmap(-1, (COUNT + 1) * HEAP)
start = ctypes.addressof(ctypes.c_char.from_buffer(room))
first = -start % HEAP
for number in range(COUNT):
    at, kind = first + number * HEAP, sys.argv[1]
    size = random.choice((4096, 8 << 20, HEAP))
    before = start + at - HEAP if number and kind != "first" else 0
    arena = start + at + 48 if not before else start + first + 48
    if kind == "wild":
        arena, before, size = random.choice((arena, 0, 1 << 63)), random.choice((0, before, HEAP)), HEAP
    room[at:at + 32] = struct.pack("<4Q", arena, before, size, HEAP)
    if kind == "wild":
        room[at + 48:at + 48 + (1 << 20)] = random.randbytes(1 << 20)
        continue
    place, step = at + 48 + (0 if before else 2208), 32
    while place + 16 < at + size and place < at + (8 << 20):
        room[place:place + 16] = struct.pack("<QQ", 0, step | 5)
        place, step = place + step, step + 16 if kind == "sizes" else 32
block = ctypes.CDLL(None).malloc
block.restype = ctypes.c_void_p
print("ready", flush=True)
if kind != "sizes":
    ctypes.c_uint64.from_address(block(1000) - 8).value = 0 if kind == "first" else 1 << 62
while True:
    time.sleep(100)
"""


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def harmless(text):
    for byte in b"\x1b\x07\x08\x00\r\t":
        assert bytes([byte]) not in text, text
    assert "\u202e" not in text.decode(), text
    return text.decode()


@pytest.fixture
def names():
    with program(NAMES, EVIL) as process:
        yield process


def test_names(names):
    for words in (("memory",), ("memory", "--growth", "1ms"), ("memory", "--json")):
        done = run(names.pid, *words, preexec_fn=limited)
        assert done.returncode == OK, done
        assert len(done.stdout) < 1 << 20
        harmless(done.stderr)
        text = harmless(done.stdout)
    found = json.loads(text)["interpreters"][0]
    assert any(row["type"] == "__main__." + EVIL for row in found["types"])


def test_torch(names):
    """Fakes are shown, once each, and lead to no loop."""
    for table in ("modules", "tensors", "optimizers", "processes"):
        done = run(names.pid, "query", "-f", "csv", "SELECT count(*) FROM torch." + table,
                   preexec_fn=limited)
        assert done.returncode == OK, done
        harmless(done.stderr)
    done = run(names.pid, "query", "SELECT path, class FROM torch.modules", preexec_fn=limited)
    assert done.returncode == OK and len(done.stdout) < 16 << 20
    harmless(done.stdout)
    done = run(names.pid, "perf", "--torch", "-d", "300ms", preexec_fn=limited)
    assert done.returncode == OK, done
    text = harmless(done.stdout)
    assert "forward" in text


def test_huge(names):
    """Sizes are believed only where memory is, and the walk ends in its time."""
    with program(HUGE) as process:
        done = run(process.pid, "memory", "--json", "--max-time", "3s", preexec_fn=limited)
        assert done.returncode == OK, done.stderr
        found = json.loads(done.stdout)["interpreters"][0]
        assert found["doubt"] and "the rest is missing" in found["doubt"]
        done = run(process.pid, "memory", "--max-time", "1s", preexec_fn=limited)
        assert done.returncode == OK, done.stderr


@pytest.mark.parametrize("kind", ["first", "sizes", "wild"])
def test_arenas(kind):
    """Chains of blocks are followed as far as they make sense, and never for ever."""
    with program(HEAPS, kind) as process:
        for words in ("memory", "--json"), ("memory", "--growth", "1ms"):
            done = run(process.pid, *words, preexec_fn=limited)
            assert done.returncode == OK, done.stderr
            harmless(done.stdout)


def test_nobody_reads_roots():
    with support.Program([PYTHON, "-c", "print('ready', flush=True); input()"]) as process:
        assert process.line() == "ready"
        for words in (["memory"], ["memory", "--growth", "1ms"], ["perf", "--torch"],
                      ["query", "SELECT * FROM torch.tensors"]):
            done = subprocess.run([support.BINARY, str(process.pid), *words], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                                  check=False, **AS_USER)
            assert done.returncode == PERMISSION and not done.stdout, (words, done)
    assert os.geteuid() == 0
