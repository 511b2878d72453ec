# SPDX-License-Identifier: GPL-3.0-or-later
"""What ends a command."""


class Problem(Exception):
    """One line for the user: what is wrong, and what to do about it."""

    def __init__(self, text):
        Exception.__init__(self, " ".join(text.split()))


class Interrupted(Problem):
    """The user pressed Ctrl-C."""
