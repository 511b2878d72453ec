# SPDX-License-Identifier: GPL-3.0-or-later
"""The dynamic loader's own list of what it has loaded, read from memory (64 bits, little endian)."""

import struct

from .facts import PAGE, flags_of, part_of_file

PT_LOAD, PT_DYNAMIC, DT_DEBUG = 1, 2, 21
PF_X, PF_W, PF_R = 1, 2, 4
MOST_HEADERS, MOST_ENTRIES, MOST_FILES, LONGEST_NAME = 64, 512, 4096, 4096


def _words(data):
    return struct.unpack("<%dQ" % (len(data) // 8), data[:len(data) // 8 * 8])


def _program_headers(read, base):
    """[(type, flags, offset, address, file size)] of the ELF file at @base."""
    header = read(base, 64)
    if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
        return []
    at, = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    data = read(base + at, size * count) if size == 56 and count <= MOST_HEADERS else b""
    headers = [struct.unpack_from("<IIQQQQ", data, i * 56) for i in range(len(data) // 56)]
    return [(kind, flags, offset, address, length)
            for kind, flags, offset, address, _, length in headers]


def _regions(headers, bias, path):
    for kind, flags, offset, address, length in headers:
        if kind == PT_LOAD and length and bias + address + length < 1 << 64:
            yield part_of_file(bias + address, length,
                               flags_of(flags & PF_R, flags & PF_W, flags & PF_X), offset, path)


def _first_link(read, base):
    """The address of the first `struct link_map`, which the program's own header leads to."""
    headers = _program_headers(read, base)
    addresses = [address for kind, _, _, address, _ in headers if kind == PT_LOAD]
    for kind, _, _, address, length in headers if addresses else ():
        if kind != PT_DYNAMIC:
            continue
        bias = base - min(addresses) // PAGE * PAGE
        entries = _words(read(bias + address, min(length, MOST_ENTRIES * 16)))
        for tag, value in zip(entries[::2], entries[1::2]):
            if tag == DT_DEBUG and value:
                found = _words(read(value + 8, 8))  # struct r_debug: r_map
                return found[0] if found else 0
    return 0


def _text(read, address):
    """The path at @address; a page that cannot be read may follow it."""
    found = b""
    while len(found) < LONGEST_NAME and b"\0" not in found:
        piece = read(address + len(found), 64 - (address + len(found)) % 64)
        if not piece:
            break
        found += piece
    return found.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def loaded_regions(read, base):
    """The parts of files that are mapped: of all but the program itself, which is at @base.

    @read: (address, length) to bytes, empty where that cannot be."""
    found, link = [], _first_link(read, base)
    for _ in range(MOST_FILES):
        entry = _words(read(link, 32)) if link else ()  # l_addr, l_name, l_ld, l_next
        if len(entry) < 4:
            break
        path = _text(read, entry[1]) if entry[1] else ""
        if path.startswith("/"):
            found += _regions(_program_headers(read, entry[0]), entry[0], path)
        link = entry[3]
    return found
