# SPDX-License-Identifier: GPL-3.0-or-later
"""What LLDB loads: `command script import …/probing_lldb.py`, which lets it find what lies beside."""

import sys

from probing_package import face


def __lldb_init_module(debugger, _):
    face("lldb_face").install(debugger, sys.modules[__name__])
