# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints memray's counts in a file, as JSON: bytes by the allocating function."""
import collections
import json
import sys

from memray import AllocatorType, FileReader

sums = collections.Counter()
skipped = (AllocatorType.FREE, AllocatorType.MUNMAP, AllocatorType.PYMALLOC_FREE, AllocatorType.MMAP)
for record in FileReader(sys.argv[1]).get_allocation_records():
    if record.allocator not in skipped:
        names = [frame[0] for frame in record.stack_trace(max_stacks=2) if not frame[0].startswith("<")]
        sums[names[0] if names else ""] += record.size
print(json.dumps(sums))
