# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for gdb and LLDB: a core that knows neither, and a thin face of each.

probing-gdb.py and probing_lldb.py are what the debuggers load. Everything here runs in the Python
that the debugger brings, from 3.6 on, with nothing but its standard library.
"""

face = None  # the Debugger that is here, for the package `probing` (core/importer.py)
