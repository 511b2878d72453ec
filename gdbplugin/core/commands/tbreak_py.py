# SPDX-License-Identifier: GPL-3.0-or-later
"""probing tbreak-py"""

from .break_py import BreakPy


class TbreakPy(BreakPy):
    name = "tbreak-py"
    summary = "Stop once when a line or function of Python is reached."
    once = True


COMMAND = TbreakPy
