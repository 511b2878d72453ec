# SPDX-License-Identifier: GPL-3.0-or-later
"""Maps a libpython that it never initialises, then continues like env_target.py."""
import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL)
exec(compile(open(sys.argv[2]).read(), sys.argv[2], "exec"))
