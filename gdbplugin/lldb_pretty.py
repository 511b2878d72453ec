# SPDX-License-Identifier: GPL-3.0-or-later
"""LLDB's own `frame variable`, `expression` and `bt` show what pointers to Python objects point to,
after `probing set pretty on`."""

from .core.errors import Problem
from .core.values import Values

CATEGORY = "probing"
POINTERS = r"^(const )?(struct )?(_?Py\w*Object|_object|_typeobject|_longobject|_frame) ?\*( ?const)?$"
REFERENCES = r"^(const )?(union |struct )?_PyStackRef$"


class Summaries:
    """The functions that LLDB calls, each with a value."""

    def __init__(self, debugger):
        self.debugger = debugger
        self._values = Values(debugger)

    def of_pointer(self, value, _):
        address = value.GetValueAsUnsigned()
        return self._text(value, self._values.text, address) if address else ""

    def of_reference(self, value, _):
        bits = value.GetChildMemberWithName("bits").GetValueAsUnsigned()
        return self._text(value, self._values.reference_text, bits)

    def _text(self, value, describe, number):
        self.debugger.begin_value(value)
        try:
            text = describe(number)
        except Problem as problem:
            text = "<%s>" % problem
        return text.encode("utf-8", "backslashreplace").decode()


def install(debugger, module, face):
    """Makes a category of summaries; it is not enabled."""
    summaries = Summaries(face)
    for name, function, pattern in (("pointer_summary", summaries.of_pointer, POINTERS),
                                    ("reference_summary", summaries.of_reference, REFERENCES)):
        setattr(module, name, function)
        # Not for pointers to such pointers.
        debugger.HandleCommand('type summary add -p -w %s -F %s.%s -x "%s"'
                               % (CATEGORY, module.__name__, name, pattern))
    debugger.HandleCommand("type category disable " + CATEGORY)


def switch(debugger, on):
    """LLDB puts it behind the category `default`, which holds the user's own summaries."""
    debugger.GetCategory(CATEGORY).SetEnabled(on)
