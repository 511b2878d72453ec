# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers with the most items, and their holders. [COUNT]"""

import sys

import probing

p = probing.current()
count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
KINDS = "('dict', 'list', 'set', 'frozenset', 'tuple', 'deque', 'OrderedDict', 'defaultdict', " \
    "'collections.deque', 'collections.OrderedDict', 'collections.defaultdict')"
# The garbage collector does not know each dict and tuple of numbers and texts: their holders do.
HELD = "SELECT o.type AS holder, a.name, NULL AS number, NULL AS key, a.value_address AS address " \
    "FROM python.objects o, python.attributes a WHERE a.address = o.address AND a.type IN " \
    + KINDS + " UNION ALL SELECT o.type, NULL, i.number, i.key, i.value_address " \
    "FROM python.objects o, python.items i WHERE i.address = o.address AND i.type IN " + KINDS

holders = {row["address"]: [] for row in p.query(
    "SELECT address FROM python.objects WHERE type IN " + KINDS)}
for row in p.query(HELD):
    how = ".%s" % row["name"] if row["number"] is None else \
        "[%s]" % (row["number"] if row["key"] is None else row["key"])
    holders.setdefault(row["address"], []).append(row["holder"] + how)

sizes, changed = [], 0
for address in holders:
    try:
        sizes.append((len(p.value(address)), address))
    except probing.Error:
        changed += 1
for size, address in sorted(sizes, reverse=True)[:count]:
    try:
        print("%8d items  %s at %#x, held by %s" % (
            size, p.value(address).type.name, address,
            ", ".join(holders[address][:3]) or "variables or C code"))
    except probing.Gone:
        changed += 1
if changed:
    print("%d containers changed or ended while they were read." % changed)
