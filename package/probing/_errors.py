# SPDX-License-Identifier: GPL-3.0-or-later
"""What the functions of the package raise."""


class Error(Exception):
    """Something failed; `code` is that of probing.h, the text says what to do."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


class NotThere(Error, AttributeError, LookupError):
    """The object has no such attribute or item."""


class NeedsCode(Error):
    """Only code of the target could tell. No code is run; the text says what would run it."""


class Gone(Error):
    """The object was freed, or torn by a change: no such object lies there any more."""
