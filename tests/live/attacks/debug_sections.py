# SPDX-License-Identifier: GPL-3.0-or-later
"""Debug information made by hand, of which each part can be wrong in a chosen way."""
import struct

from files_support import tool

COMPILE_UNIT, STRUCTURE, SUBPROGRAM, BASE_TYPE = 0x11, 0x13, 0x2E, 0x24
NAME, LINES, LOW, HIGH = 0x03, 0x10, 0x11, 0x12
ADDRESS, DATA8, STRING, OFFSET, INDIRECT, OTHER_FILE = 0x01, 0x07, 0x08, 0x17, 0x16, 0x1F21


def leb(number):
    """An unsigned number of seven bits a byte."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def kind(code, tag, children, *attributes):
    """The form of entries with this code."""
    return (leb(code) + leb(tag) + bytes([children]) +
            b"".join(leb(name) + leb(form) for name, form in attributes) + b"\0\0")


def unit(entries):
    body = struct.pack("<HIB", 4, 0, 8) + entries
    return struct.pack("<I", len(body)) + body


# A unit of all addresses, with the line program at offset 0.
ALL_CODE = ((NAME, STRING), (LINES, OFFSET), (LOW, ADDRESS), (HIGH, DATA8))


def all_code(name):
    return leb(1) + name + b"\0" + struct.pack("<IQQ", 0, 0, 1 << 40)


def place(address):
    """The next row is of this address."""
    return b"\0\x09\x02" + struct.pack("<Q", address)


ROW, END = b"\x01", b"\0\x01\x01"
LINE_BASE, LINE_RANGE, OPCODES = -5, 14, 13


def advance(bytes_of_code, lines=1):
    """A row so much further on."""
    return bytes([OPCODES + lines - LINE_BASE + LINE_RANGE * bytes_of_code])


def line_program(program):
    lengths = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    header = (bytes([1, 1, 1, LINE_BASE & 0xFF, LINE_RANGE, OPCODES]) + lengths +
              b"\0" + b"made.c\0\0\0\0" + b"\0")
    rest = struct.pack("<I", len(header)) + header + program
    return struct.pack("<IH", len(rest) + 2, 4) + rest


def add_sections(path, **sections):
    """Adds debug sections to a file."""
    words = []
    for name, content in sections.items():
        part = path.parent / name
        part.write_bytes(content)
        words += ["--add-section", ".%s=%s" % (name, part)]
    tool("objcopy", *words, path)
