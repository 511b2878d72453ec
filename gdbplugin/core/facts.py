# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts that a debugger knows by itself, written as /proc would have them."""


PAGE = 4096


class Region:
    """A mapping of memory."""

    def __init__(self, start, end, flags, offset=0, path=""):
        self.start, self.end, self.offset, self.path = start, end, offset, path
        self.flags = flags  # "r-x"


def flags_of(readable, writable, executable):
    return ("r" if readable else "-") + ("w" if writable else "-") + ("x" if executable else "-")


def part_of_file(start, size, flags, offset, path):
    """The mapping of a part of a file that is not as long as pages are."""
    return Region(start - start % PAGE, (start + size + PAGE - 1) // PAGE * PAGE, flags,
                  max(0, offset - start % PAGE), path)


def maps_text(regions):
    """The text of "maps". Files are told apart by a number in place of their inode."""
    numbers, lines = {}, []
    for region in sorted(regions, key=lambda r: r.start):
        inode = 0
        if region.path.startswith("/"):
            inode = numbers.setdefault(region.path, len(numbers) + 1)
        path = region.path.replace("\n", "\\012")
        lines.append("%08x-%08x %sp %08x 00:00 %d %s\n" % (
            region.start, region.end, region.flags, region.offset, inode, path))
    return "".join(lines).encode("utf-8", "surrogateescape")


def stat_text(tid, name, state):
    """The text of "task/TID/stat", of which only the first fields are known."""
    text = "%d (%s) %s" % (tid, name or "", state) + " 0" * 49 + "\n"
    return text.encode("utf-8", "surrogateescape")


def numbers_text(numbers):
    return "".join("%d\n" % number for number in sorted(set(numbers))).encode()
