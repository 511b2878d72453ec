# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls window.c with lists of several lengths."""
class Sensor:
    def __init__(self, name, rows):
        self.name, self.rows = name, rows
import window  # noqa: E402


def smooth(sensors, width):
    return {each.name: window.mean(each.rows, width) for each in sensors}


print(smooth([Sensor("a", [1, 2, 3, 4]), Sensor("b", [5, 6, 7]), Sensor("c", [1, 2])], 3))
