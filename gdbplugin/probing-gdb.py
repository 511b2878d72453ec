# SPDX-License-Identifier: GPL-3.0-or-later
"""What gdb loads: `source …/probing-gdb.py`."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
try:
    from probing_package import face
finally:
    del sys.path[0]
face("gdb_face").install()
