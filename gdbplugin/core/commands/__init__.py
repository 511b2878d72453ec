# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands, one in each file; a file is imported when its command is first run or asked about."""

import importlib

NAMES = ("backtrace", "break-py", "down", "eval", "frame", "info", "inject", "list", "locals",
         "print", "query", "snapshot", "tables", "threads", "up")


def find(name):
    """The class of a command."""
    module = importlib.import_module("." + name.replace("-", "_"), __name__)
    return module.COMMAND
