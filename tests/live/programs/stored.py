# SPDX-License-Identifier: GPL-3.0-or-later
"""Appends rows of known content as long as the line that it reads says, and tells how many there are."""

import sys

sys.path.insert(0, sys.argv[1])

import probing  # noqa: E402

table = probing.table("stored", {"number": int, "kind": str, "text": str})
count = 0
print("ready", table.path, flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        assert table.append(count, "kind%d" % (count % 7), "x" * (count % 50))
        count += 1
    print(count, flush=True)
