# SPDX-License-Identifier: GPL-3.0-or-later
"""probing up"""

from ..frames import Move


class Up(Move):
    name = "up"
    summary = "Select the Python frame that called the selected one."

    def destination(self, now, count):
        return now + count


COMMAND = Up
