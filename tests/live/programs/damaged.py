# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints where the types of the interpreter lie, and then reads from its stdin for ever; its test
damages one of them meanwhile.  With a word as argument, `sys.hexversion` is damaged first:
"deleted", "replaced", "lowered"."""
import json
import os
import sys


def innermost(number, text, flag, items):
    os.read(0, 1)


def outer():
    innermost(4711, "a text", True, (1, "two"))


def where():
    types = [type, int, str, dict, tuple, list, bytes, type(outer), type(outer.__code__)]
    print(json.dumps({
        "header": object.__basicsize__,
        "types": [[each.__name__, id(each), each.__flags__] for each in types]}))
    sys.stdout.flush()


where()
if sys.argv[1:] == ["deleted"]:
    del sys.hexversion
elif sys.argv[1:] == ["replaced"]:
    sys.hexversion = "of a program"
elif sys.argv[1:] == ["lowered"]:
    sys.hexversion = 5
outer()
