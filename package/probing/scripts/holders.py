# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes, items and variables that hold an object. ADDRESS or CLASS"""

import sys

import probing

p = probing.current()
if len(sys.argv) != 2:
    sys.exit("name an object by its id(), or all objects of a class: 'holders TARGET Session'")
try:
    found = [p.value(int(sys.argv[1], 0))]
except ValueError:
    found = list(p.find(sys.argv[1]))
if not found:
    sys.exit("there is no object of the class %s" % sys.argv[1])
holders = p.holders(found)
variables = {}
for row in p.query("SELECT tid, func, name, address FROM python.locals"):
    variables.setdefault(row["address"], []).append(row)
for value in found:
    print("%s at %#x is held by:" % (value.type.name, value.address))
    held = holders.get(value.address, ())
    for holder, how in held:
        print("  %s at %#x%s" % (holder.type.name, holder.address, how))
    for row in variables.get(value.address, ()):
        print("  the variable %s of %s in thread %d" % (row["name"], row["func"], row["tid"]))
    if not held and value.address not in variables:
        print("  nothing that can be seen: C code, or a coroutine that no thread runs")
