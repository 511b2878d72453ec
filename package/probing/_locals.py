# SPDX-License-Identifier: GPL-3.0-or-later
# Variables of a frame, for code that only looks at them. The agent has this file too, in front of
# agent/eval/bootstrap.py. So it runs on Python 3.4.
import sys


def read_locals(frame, read):
    """read(variables) for a frame of the thread that calls this; none of their values is kept.

    Up to Python 3.12, f_locals is a dict that the frame keeps until it ends, with all values: what is
    large, as a batch or the output of a model, would stay in memory with it."""
    own = frame.f_locals
    try:
        return read(own)
    finally:
        code = frame.f_code
        # What a tracer leaves in the dict becomes the variables of the function, and a caller of
        # locals() may hold it, too. The three that are counted: own, the frame, and getrefcount()
        # itself.
        if sys.version_info < (3, 13) and code.co_flags & 1 and not sys.gettrace() and \
                not sys.getprofile() and sys.getrefcount(own) == 3:
            for name in code.co_varnames + code.co_cellvars + code.co_freevars:
                own.pop(name, None)
