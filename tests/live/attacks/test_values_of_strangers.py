# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks of another user's process on root's `print`, python.attributes and python.items: classes with
circular or endless bases, members and tables at arbitrary addresses, generators and tasks with false
claims, and too much valid data. Each answer comes, is short, and sends no control characters."""

import resource

import pytest
import support
from files_support import AS_USER, PYTHON, needs_root, program, run

pytestmark = needs_root
EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\t\r"
MEMORY = 2 << 30  # that the command may have
MOST = 4 << 20  # bytes that it may print

# Places in types are the same from 3.8 on. Nothing of Python runs after the lies but one system call.
START = """
import ctypes, gc, mmap, os, sys
EVIL = sys.argv[1]
gc.disable()
WORD = ctypes.c_uint64
NAME, FLAGS, MEMBERS, BASE, DICT, DICTOFFSET, MRO, ITEMSIZE = 24, 168, 240, 256, 264, 288, 344, 40
MEMBER = 40  # bytes: name, type, offset, flags, text
HEADER = object.__basicsize__
def peek(address):
    return WORD.from_address(address).value
def poke(address, value):
    WORD.from_address(address).value = value & (1 << 64) - 1
# Memory almost without end, in which all that is read is zero, or a letter.
room = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
zeros = ctypes.addressof(ctypes.c_char.from_buffer(room))
letters = mmap.mmap(-1, 1 << 24)
letters[:] = b"x" * (1 << 24)
text = ctypes.addressof(ctypes.c_char.from_buffer(letters))
kept = []
def made(name="Lie", bases=(object,), **content):
    cls = type(name, bases, content)
    kept.append(cls)
    found = cls()
    found.__dict__.update(a=1, b=[2])
    return found
def show():
    print("ready", flush=True)
    os.read(0, 1)
"""

CLASSES = START + """
around, long, nothing, itself, elsewhere, mixed, typeless = (made() for _ in range(7))
kept += [(type(around),) * 3, (object,) * 100000, (1, "x", None, print)]
poke(id(type(around)) + MRO, id(kept[-3]))
poke(id(type(around)) + BASE, id(type(around)))
poke(id(type(long)) + MRO, id(kept[-2]))
poke(id(type(mixed)) + MRO, id(kept[-1]))
poke(id(type(nothing)) + MRO, 0)
poke(id(type(itself)) + 8, id(itself))
poke(id(type(itself)) + DICT, id(itself))
poke(id(type(elsewhere)) + MRO, zeros)
poke(id(type(elsewhere)) + DICT, zeros)
poke(id(typeless) + 8, text)
nameless = made()
poke(id(type(nameless)) + NAME, text)
evil = made(EVIL, **{EVIL: property(print), "doc": EVIL})
evil.__dict__[EVIL] = EVIL
sized = made(bases=(int,))
poke(id(sized) + 16, 1 << 59)  # digits, behind which its dict would lie
flags = made()
poke(id(type(flags)) + FLAGS, (1 << 64) - 1)
deep = object
for number in range(400):
    deep = type("Deep%d" % number, (deep,), {"step%d" % number: number})
deep = deep()
show()
"""

MEMBERS = START + """
def members(slots, lies):
    found = type("Slots", (object,), {"__slots__": slots})()
    for name in slots:
        setattr(found, name, name)
    at = peek(id(type(found)) + MEMBERS)
    for number, words in enumerate(lies):
        for word, value in enumerate(words):
            if value is not None:
                poke(at + number * MEMBER + word * 8, value)
    kept.append(type(found))
    return found
far = members(("a", "b", "c"), [(None, None, 1 << 62), (None, None, -(1 << 63)), (None, None, -8)])
kinds = members(("a", "b", "c"), [(None, 77), (None, 1 << 31), (None, 0)])
names = members(("a", "b"), [(text,), (8,)])
endless = members(("a",), [])
table = mmap.mmap(-1, 40 << 20)
place = ctypes.addressof(ctypes.c_char.from_buffer(table))
for number in range(1 << 19):
    table[number * 40:number * 40 + 8] = text.to_bytes(8, "little")
poke(id(type(endless)) + MEMBERS, place)
gone = members(("a",), [])
poke(id(type(gone)) + MEMBERS, 0x123456789000)
loose = made()
poke(id(type(loose)) + DICTOFFSET, -4000)
poke(id(type(loose)) + ITEMSIZE, 1 << 60)
show()
"""

TABLES = START + """
def keys_of(table):
    return peek(id(table) + HEADER + 16)
def lies(*pokes):
    table = {"a": 1, "b": 2, 7: 3}
    kept.append(table)
    for offset, value in pokes:
        poke(keys_of(table) + offset, value)
    return table
huge, wide, kind = lies((24, 1 << 40)), lies((8, 0xffff)), lies((8, 0x7f0303))
entries, indices = lies((16, 1 << 60), (24, 1 << 60)), lies((32, -1), (40, -1))
zeroed, circular = {"a": 1}, {"a": 1}
poke(id(zeroed) + HEADER + 16, zeros)
poke(id(circular) + HEADER + 16, id(circular))
counted = {"a": 1}
poke(id(counted) + HEADER, 1 << 62)
split = made()
poke(id(type(split)) + FLAGS, peek(id(type(split)) + FLAGS))
poke(id(split.__dict__) + HEADER + 24, zeros)
listed, packed, ringed = [1], (1, 2), __import__("collections").deque([1, 2])
poke(id(listed) + HEADER, 1 << 62)
poke(id(listed) + HEADER + 8, zeros)
poke(id(packed) + HEADER, 1 << 62)
poke(id(ringed) + HEADER, 1 << 50)
bag = {1, 2, 3}
poke(id(bag) + HEADER + 16, 1 << 60)
string, raw, number = EVIL * 2, b"abc" * 2, 1 << 70
poke(id(string) + 16, 1 << 61)
poke(id(raw) + 16, 1 << 61)
poke(id(number) + 16, 1 << 58)
show()
"""

SUSPENDED = START + """
import asyncio, contextvars
def generate(name):
    held = [name, EVIL]
    yield held
async def wait(name):
    await asyncio.sleep(1000)
def suspended():
    found = generate(EVIL)
    next(found)
    kept.append(found)
    return found
whole = suspended()
words = range(HEADER, whole.__sizeof__() - 7, 8)
lies = {}
for place in words:
    for number, value in enumerate((0, text, zeros, id(whole), (1 << 64) - 1, 0x0404040404040404)):
        lies["g%d_%d" % (place, number)] = found = suspended()
        poke(id(found) + place, value)
loop = asyncio.new_event_loop()
def task():
    found = loop.create_task(wait(EVIL))
    kept.append(found)
    return found
for place in range(HEADER, task().__sizeof__() - 7, 8):
    for number, value in enumerate((0, text, zeros, (1 << 64) - 1)):
        lies["t%d_%d" % (place, number)] = found = task()
        poke(id(found) + place, value)
    lies["i%d" % place] = found = task()
    poke(id(found) + place, id(found))
variable = contextvars.ContextVar(EVIL, default=EVIL)
globals().update(lies)
lies["variable"] = variable
print(" ".join(lies), flush=True)
show()
"""

MUCH = START + """
items = made()
items.__dict__.update({"n%d" % number: number for number in range(1000000)})
strings = made()
strings.text, strings.raw = "\\u20ac" * 10000000, bytearray(10000000)
strings.__dict__["k" * 10000000] = EVIL
listed, table = list(range(1000000)), {number: str(number) for number in range(1000000)}
bag = set(range(1000000))
rows = [made(**{"kind": number}) for number in range(2000)] * 500
show()
"""

PARTS = ("%s", "vars(%s)", "dir(%s)", "len(%s)", "type(%s)", "%s.a", "%s.__class__", "%s['a']", "%s[7]", "%s[-1]")


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def ask(*words):
    done = run(*words, preexec_fn=limited)
    assert done.returncode in (0, 1), (words, done)
    said = done.stdout + done.stderr
    assert len(said) < MOST, words
    for byte in b"\x1b\x07\x08\x00\r\t":
        assert bytes([byte]) not in said, (words, said)
    assert "\u202e" not in said.decode(), (words, said)
    return done


def look(process, name, parts=PARTS):
    for part in parts[::support.count(3, 1)]:
        done = ask(process.pid, "print", part % name)
        assert (done.returncode == 0) == bool(done.stdout) and (done.returncode == 0 or done.stderr), (name, part)


def tables(process, where="1"):
    for table in ("attributes", "items"):
        ask(process.pid, "query", "SELECT count(*), sum(length(x.value)), max(x._error) FROM python.locals l, "
            "python.%s(l.address) x WHERE %s" % (table, where))


@pytest.mark.parametrize("script, names", [
    (CLASSES, "around long nothing itself elsewhere mixed typeless nameless evil sized flags deep"),
    (MEMBERS, "far kinds names endless gone loose"),
    (TABLES, "huge wide kind entries indices zeroed circular counted split listed packed ringed bag string raw "
             "number"),
], ids=["classes", "members", "tables"])
def test_lies(script, names):
    with program(script, EVIL) as process:
        support.wait_for_sleep(process.pid, "pipe_read")
        for name in names.split():
            look(process, name)
            ask(process.pid, "print", "--depth", "60", "--max-items", "1000", name)
        tables(process)
        ask(process.pid, "dump", "--locals", "--all-names")
        assert process.alive()


def test_generators_and_tasks():
    process = support.Program([PYTHON, "-c", SUSPENDED, EVIL], **AS_USER)
    with process:
        names = process.line().split()
        assert process.line() == "ready" and len(names) > 100
        support.wait_for_sleep(process.pid, "pipe_read")
        for name in names[::support.count(13, 1)]:
            prefix = "gi" if name[0] == "g" else "cr"
            of = "%s" if name[0] == "g" else "%s._coro"
            look(process, name, ("%s", "{0}.{1}_frame".format(of, prefix), "%s._coro", "%s._fut_waiter",
                                 "{0}.{1}_frame.f_locals".format(of, prefix), "{0}.{1}_await".format(of, prefix),
                                 "{0}.{1}_frame.f_locals['name']".format(of, prefix), "%s.gi_yieldfrom"))
        tables(process)
        ask(process.pid, "dump", "--locals", "--all-names")
        ask(process.pid, "query", "SELECT count(*) FROM python.tasks")
        assert process.alive()


def test_too_much():
    with program(MUCH, EVIL) as process:
        support.wait_for_sleep(process.pid, "pipe_read")
        for name in ("items", "strings", "listed", "table", "bag", "rows"):
            look(process, name)
        look(process, "items", ("%s.n999999",))
        look(process, "table", ("%s[999999]",))
        look(process, "strings", ("%s.text",))
        tables(process, "l.name IN ('items', 'strings', 'listed', 'table', 'bag', 'rows')")
        ask(process.pid, "dump", "--locals", "--all-names")
        assert process.alive()
