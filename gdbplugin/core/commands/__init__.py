# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands, one in each file; a file is imported when its command is first run or asked about."""

import importlib
import os

# One for each file beside this one.
NAMES = sorted(file[:-3].replace("_", "-") for file in os.listdir(os.path.dirname(__file__))
               if file.endswith(".py") and not file.startswith("_"))

ADDED = {}  # {name: class} of the commands that extensions have made


def find(name):
    """The class of a command."""
    if name in ADDED:
        return ADDED[name]
    module = importlib.import_module("." + name.replace("-", "_"), __name__)
    return module.COMMAND
