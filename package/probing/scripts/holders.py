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
for value in found:
    print("%s at %#x is held by:" % (value.type.name, value.address))
    holders = p.referrers(value)
    for holder, how in holders:
        print("  %s at %#x%s" % (holder.type.name, holder.address, how))
    variables = p.query("SELECT tid, func, name FROM python.locals WHERE address = %d"
                        % value.address)
    for row in variables:
        print("  the variable %s of %s in thread %d" % (row["name"], row["func"], row["tid"]))
    if not holders and not variables:
        print("  nothing that can be seen: C code, or a coroutine that no thread runs")
