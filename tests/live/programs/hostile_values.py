# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that lie about themselves: their memory is changed behind Python's back, which from then
on does nothing but sleep.  A name of a variable is on each line of the output, then "ready"."""
import ctypes
import gc
import mmap
import os
import sys

WORD = ctypes.c_uint64
HEADER = object.__basicsize__


class Thing(object):
    pass


def with_dict(**content):
    thing = Thing()
    thing.__dict__.update(content)
    return thing


def poke(address, value):
    WORD.from_address(address).value = value & (1 << 64) - 1


def peek(address):
    return WORD.from_address(address).value


gc.disable()
page = mmap.mmap(-1, 4096)
inside = ctypes.addressof(ctypes.c_char.from_buffer(page))

# A dict that claims more than memory has, one whose table is elsewhere, or is itself.
claims, lost, circular, tiny = ({"a": 1, "b": 2} for _ in range(4))
poke(id(claims) + HEADER, 1 << 31)
poke(id(lost) + HEADER + 16, 0x123456789000)
poke(id(circular) + HEADER + 16, id(circular))
poke(id(tiny) + HEADER + 16, inside)
claims_thing = with_dict(d=claims, lost=lost, circular=circular, tiny=tiny)

# Values, items and types that are nowhere, or each other.
gone = [1, 2, 3]
poke(peek(id(gone) + HEADER + 8), 8)
poke(peek(id(gone) + HEADER + 8) + 8, id(gone))
poke(peek(id(gone) + HEADER + 8) + 16, 0xfffffffffffffff8)
long_list = [1]
poke(id(long_list) + HEADER, 1 << 40)
typeless, own_type = [1], [2]
poke(id(typeless) + HEADER - 8, 0x4141414141414140)
poke(id(own_type) + HEADER - 8, id(own_type))
# A class that has nothing but a name and the flag of int (tp_name; tp_flags, 1 << 24).
nothing, numberlike = mmap.mmap(-1, 4096), [3]
nothing[2048:2052] = b"liar"
flagged = ctypes.addressof(ctypes.c_char.from_buffer(nothing))
poke(flagged + HEADER + 8, flagged + 2048)
poke(flagged + HEADER + 152, 1 << 24)
poke(id(numberlike) + HEADER - 8, flagged)
pieces_thing = with_dict(gone=gone, long_list=long_list, typeless=typeless, own_type=own_type, numberlike=numberlike)

# Valid values, but too many.
many = with_dict(**{"n%d" % i: i for i in range(200000)})
large = with_dict(text="x" * 10000000, items=list(range(1000000)),
                  keys={i: i for i in range(300000)})
named = with_dict(**{"n" * 1000000: 1, "\x1b[2J\x07\u202e": "\x1b]0;title\x07"})
around = with_dict()
around.around = [around, {"around": around}]
deep = with_dict()
for _ in range(5000):
    outer = with_dict(deep=deep, more=[deep])
    deep = outer
NAMES = ["claims_thing", "pieces_thing", "many", "large", "named", "around", "deep"]
sys.stdout.write("\n".join(NAMES + ["ready", ""]))
sys.stdout.flush()
os.read(os.pipe()[0], 1)
