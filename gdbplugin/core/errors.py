# SPDX-License-Identifier: GPL-3.0-or-later
"""What ends a command."""


class Problem(Exception):
    """One line for the user: what is wrong, and what to do about it. Where columns matter, as below SQL,
    lines that stay as they are follow it."""

    def __init__(self, text, below=()):
        Exception.__init__(self, "\n".join([" ".join(text.split())] + list(below)))


class Interrupted(Problem):
    """The user pressed Ctrl-C."""
