# SPDX-License-Identifier: GPL-3.0-or-later
"""Has a text on the C stack, in a function that sleeps or spins: stack_text.py LIBRARY LEAF TEXT"""
import ctypes
import os
import sys

LIBRARY, LEAF, TEXT = sys.argv[1:4]
function = ctypes.CDLL(LIBRARY).stack_text_below
descriptor = os.pipe()[0] if LEAF == "sleep" else -1
print("ready", flush=True)
function(descriptor, TEXT.encode())
