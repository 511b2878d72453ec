# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps a session for each visitor, and forgets none."""

import time


class Session:
    def __init__(self, visitor):
        self.visitor = visitor
        self.pages = ["/"] * 20


SESSIONS = {}


def visit(visitor):
    SESSIONS[visitor] = Session(visitor)


visitors = 0
print("ready", flush=True)
while True:
    visitors += 1
    visit(visitors)
    time.sleep(0.0005)
