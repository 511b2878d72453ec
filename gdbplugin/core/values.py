# SPDX-License-Identifier: GPL-3.0-or-later
"""Values for the debugger's own display of pointers to objects, in `print` and `info locals`.

A session is opened for each value, or for as long as the debugger says that nothing has changed.
"""

from .command import open_session
from .errors import Interrupted, Problem
from .text import safe

TAG_BITS, TAG_INT = 3, 3


class Values:
    """What objects of the selected process are."""

    def __init__(self, debugger):
        self.debugger = debugger
        self._session = None
        self._key = None

    def text(self, address, limit=0):
        """repr() of the object at @address, without running code; or why there is none. At most
        @limit items and characters, 0: a moderate number."""
        try:
            return safe(self._describe(address, limit))
        except Interrupted:
            raise
        except Problem as problem:
            return "<%s>" % safe(str(problem))

    def reference_text(self, bits, limit=0):
        """The same for what the stack of 3.14 and later holds: a pointer with tags, or a number."""
        if bits & TAG_BITS == TAG_INT:
            number = bits >> 2
            return "int %d in the reference" % (number - (1 << 62) if number >> 61 else number)
        return self.text(bits & ~TAG_BITS, limit) if bits & ~TAG_BITS else "NULL"

    def forget(self, *_):
        """Something has changed."""
        if self._session is not None:
            self._session.__exit__()
        self._session = self._key = None

    def _describe(self, address, limit):
        key = self.debugger.unchanged()
        if key is None:
            with open_session(self.debugger) as session:
                return session.describe(address, limit)
        if key != self._key:
            self.forget()
            self._session, self._key = open_session(self.debugger).__enter__(), key
        try:
            return self._session.describe(address, limit)
        except BaseException:
            if self._session.broken():
                self.forget()
            raise
