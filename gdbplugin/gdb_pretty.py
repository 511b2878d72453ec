# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb's own `print`, `info locals` and `backtrace` show what pointers to Python objects point to,
after `set probing pretty on`."""

import re

import gdb

from .core.values import Values

# As CPython calls its structs; where all of them is known, only how they begin matters.
OPAQUE = ("_object", "_typeobject", "_longobject", "_frame")
DEPTH = 4  # of structs that begin with one another
# Events after which memory, or the process, may be another one.
CHANGES = ("stop", "cont", "exited", "memory_changed", "inferior_call", "new_objfile",
           "clear_objfiles", "before_prompt")


def is_object(kind, depth=DEPTH):
    """Whether a struct begins as all Python objects do."""
    if kind.code != gdb.TYPE_CODE_STRUCT:
        return False
    fields = kind.fields()
    if not fields:
        return kind.name in OPAQUE
    if any(field.name == "ob_type" for field in fields):
        return True
    return depth > 0 and is_object(plain(fields[0].type), depth - 1)


def plain(kind):
    return kind.unqualified().strip_typedefs()


# Addresses outside of texts.
ADDRESS = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")| at 0x[0-9a-f]+""")


def addressed(address, text):
    """The text behind the address of the object, as gdb itself has it; or without any."""
    if gdb.parameter("print address"):
        return "%#x %s" % (address, text)
    return ADDRESS.sub(lambda found: found.group(1) or "", text)


def limit():
    """gdb's own limit for strings and arrays."""
    return gdb.parameter("print elements") or 0xffffffff


class Shown:
    """A value as gdb wants it from a printer."""

    def __init__(self, text):
        self._text = text

    def to_string(self):
        return self._text


class Printer:
    """Stands among gdb's printers; `info pretty-printer` lists it."""

    def __init__(self, debugger):
        self.name = "probing"
        self.enabled = True
        self.subprinters = None
        self._values = Values(debugger)

    def __call__(self, value):
        try:
            text = self._text(value)
        except gdb.error:  # optimized out, or not to be had: gdb says so itself
            return None
        if text is None:
            return None
        for other in gdb.pretty_printers[gdb.pretty_printers.index(self) + 1:]:
            shown = other(value) if getattr(other, "enabled", True) else None
            if shown is not None:
                return shown
        charset = gdb.parameter("host-charset")
        charset = "utf-8" if charset == "auto" else charset
        return Shown(text.encode(charset, "backslashreplace").decode(charset))

    def _text(self, value):
        """What is shown of a value that is ours, else None."""
        kind = plain(value.type)
        if kind.code == gdb.TYPE_CODE_PTR and is_object(plain(kind.target())):
            address = int(value)
            return addressed(address, self._values.text(address, limit())) if address else "0x0"
        if value.type.unqualified().name == "_PyStackRef":
            bits = int(value["bits"])
            return addressed(bits, self._values.reference_text(bits, limit()))
        return None

    def _on_change(self, *_):
        self._values.forget()

    def switch(self, on):
        """Makes it the last of gdb's printers, after those of other extensions; or removes it."""
        if on == (self in gdb.pretty_printers):
            return
        events = [getattr(gdb.events, name) for name in CHANGES if hasattr(gdb.events, name)]
        if on:
            gdb.pretty_printers.append(self)
        else:
            gdb.pretty_printers.remove(self)
            self._values.forget()
        for event in events:
            if on:
                event.connect(self._on_change)
            else:
                event.disconnect(self._on_change)
