# SPDX-License-Identifier: GPL-3.0-or-later
"""How the program reaches an object."""

from .value import Value

MODULES = "SELECT name, address FROM python.modules WHERE address IS NOT NULL"
VARIABLES = "SELECT tid, func, name, address FROM python.locals WHERE address IS NOT NULL"
MOST = 2000  # objects of one step


class Path(list):
    """[(what, how)] from the root to the object: `what` is a Value or the words for a root, `how` its
    attribute or item that comes next."""

    def __str__(self):
        return str(self[0][0]) + "".join(how for _, how in self)

    def __repr__(self):
        return "<path %s>" % self


def roots(program):
    """{address: words}"""
    found = {}
    for row in program.query(VARIABLES):
        found.setdefault(row["address"], "%s of %s() in thread %d" % (
            row["name"], row["func"], row["tid"]))
    for row in program.query(MODULES):
        found[row["address"]] = row["name"]
    return found


def find(program, value, depth):
    """Step by step outwards, all holders of one step in one go."""
    known, steps, now = roots(program), {value.address: None}, [value.address]
    for _ in range(depth + 1):
        for address in now:
            if address in known:
                return made(program, steps, address, known[address])
        found = program._holders(now[:MOST])
        now = []
        for held, holders in found.items():
            for address, how in holders:
                if address not in steps:
                    steps[address] = held, how
                    now.append(address)
        if not now:
            return None
    return None


def made(program, steps, address, root):
    path, what = Path(), root
    while steps[address]:
        held, how = steps[address]
        path.append((what, how))
        address, what = held, Value(program, held)
    path.append((what, ""))
    return path
