# SPDX-License-Identifier: GPL-3.0-or-later
"""Has a second interpreter; prints its id."""
import sys
import types

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

sys.modules["only_in_main"] = types.ModuleType("only_in_main")
made = interpreters.create()
print("ready", int(made))
sys.stdout.flush()
sys.stdin.read()
