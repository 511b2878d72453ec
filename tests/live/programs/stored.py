# SPDX-License-Identifier: GPL-3.0-or-later
"""Appends as many rows of known content as each line of stdin says, and prints their number in all."""

import os
import sys

sys.path.insert(0, sys.argv[1])

import probing  # noqa: E402

table = probing.table("stored", {"number": int, "kind": str, "text": str})
count = 0
print("ready", table.path, flush=True)
# The child does the work, when its parent waits for it, and when that has ended.
if "fork" in sys.argv and (child := os.fork()):
    print("child", child, flush=True)
    os.waitpid(child, 0)
    sys.exit()
for line in sys.stdin:
    for _ in range(int(line)):
        assert table.append(count, "kind%d" % (count % 7), "x" * (count % 50))
        count += 1
    print(count, flush=True)
