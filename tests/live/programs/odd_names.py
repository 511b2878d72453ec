# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that are long, or hold separators of text formats."""
import os
import sys

ODD = ["x" * 10000, "\U0001f40d\u6f22", 'a,"b"\r\n\tc\\d', "\ud800\udcff", "nul\0nul", "", "\u202e\x1b[2J"]


def sleep():
    print("ready")
    sys.stdout.flush()
    sys.stdin.read()


def call_through(names, then):
    """Calls `then` below a function of each name."""
    if not names:
        return then()

    def function():
        return call_through(names[1:], then)

    function.__code__ = function.__code__.replace(co_name=names[0])
    return function()


# A module's variables can have any name.
space = {"name %d: %s" % (i, odd): odd for i, odd in enumerate(ODD)}
space.update(call=lambda: call_through(ODD, sleep))
exec(compile("call()", os.fsdecode(b"/tmp/\xff\xfe'\xc3\xa9.py"), "exec"), {}, space)
