# SPDX-License-Identifier: GPL-3.0-or-later
"""probing down"""

from ..errors import Problem
from ..frames import Move


class Down(Move):
    name = "down"
    summary = "Select the Python frame that the selected one called."

    def destination(self, now, count):
        if now < count:
            raise Problem("frame %d is %d from the innermost one" % (now, now)
                          if now else "this is the innermost frame")
        return now - count


COMMAND = Down
