# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of a target as Python objects, read from outside when they are asked for."""

import ast
import ctypes
import struct
from typing import Any, List, Tuple

from . import _library as lib
from . import extend
from ._errors import Gone, NeedsCode, NotThere
from ._library import LIBRARY, decode, encode


OBJECT = LIBRARY.probing_object
UNPACK = struct.Struct("=QQQiiqdQQ").unpack
_PLAIN = frozenset((lib.OTHER, lib.NONE, lib.LARGE, lib.STRING))


def literal(text):
    """The constant that a text of C data stands for; the text itself if it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


class Type:
    """The class of an object."""

    def __init__(self, value):
        self.value = value
        self.address = value.address

    @property
    def name(self) -> str:
        """Its __name__."""
        return self.value.__getattr__("__name__")

    @property
    def qualname(self) -> str:
        """Its __qualname__."""
        return self.value.__getattr__("__qualname__")

    @property
    def module(self) -> str:
        """Name of the module that defines it; "builtins" for those of the interpreter."""
        try:
            return str(self.value._prb_read(lib.ATTRIBUTE, name=b"__module__"))
        except (NotThere, NeedsCode):
            return "builtins"

    def __eq__(self, other):
        return self.address == other.address if isinstance(other, Type) else NotImplemented

    def __hash__(self):
        return hash(self.address)

    def __repr__(self):
        return "<type %s>" % self.name


class Value:
    """A read-only stand-in of one object: its attributes, items, length, iteration and comparison.

    An attribute that has the name of a member of this class (`type`, `address`, `size`, `native`) is
    read by `probing.get(value, "type")`.
    """

    __slots__ = ("_prb_program", "address", "_prb_type", "_prb_kind", "_prb_number")

    def __init__(self, program, address, type_address=0, kind=None, number=None):
        self._prb_program, self.address = program, address
        self._prb_type, self._prb_kind, self._prb_number = type_address, kind, number
        if kind is None:
            self._prb_read(lib.SELF, self)

    def _prb_ask(self, part, name=b"", index=0):
        program = self._prb_program
        error = OBJECT(program._pointer or program._open(), self.address, self._prb_type, part, name,
                       index, program._object_at)
        if error:
            program._settle(error, program._object.outcome)
        return program._object

    def _prb_read(self, part, into=None, name=b"", index=0):
        # The struct is unpacked in one go: each field by itself costs as much.
        program = self._prb_program
        error = OBJECT(program._pointer or program._open(), self.address, self._prb_type, part, name,
                       index, program._object_at)
        if error:
            program._settle(error, program._object.outcome)
        _, address, type_address, kind, _, integer, real, text, length = UNPACK(program._object)
        if kind in _PLAIN:
            number = None
        elif kind == lib.INT:
            number = integer
        elif kind == lib.FLOAT:
            number = real
        elif kind == lib.BOOL:
            number = bool(integer)
        else:
            return literal(decode(ctypes.string_at(text, length)))
        if into is None:
            return Value(program, address, type_address, kind, number)
        into._prb_type, into._prb_kind, into._prb_number = type_address, kind, number
        return into

    def _prb_text(self, part, limit=0):
        found = self._prb_ask(part, index=limit)
        return decode(ctypes.string_at(found.text, found.length))

    def _prb_constant(self):
        """(True, the constant) for None, numbers and texts."""
        if self._prb_kind == lib.NONE:
            return True, None
        if self._prb_kind in (lib.INT, lib.BOOL, lib.FLOAT):
            return True, self._prb_number
        if self._prb_kind == lib.LARGE:
            return True, int(self._prb_text(lib.REPR))
        if self._prb_kind == lib.STRING:
            return True, self._prb_text(lib.STR)
        return False, None

    @property
    def type(self) -> Type:
        """Its class: .name, .qualname, .address."""
        return Type(self._prb_read(lib.TYPE))

    @property
    def size(self) -> int:
        """Bytes of the object with what it alone owns, such as the table of a dict or the buffer of
        an array; not those of the objects that it refers to."""
        return self._prb_ask(lib.SIZE).integer

    def native(self) -> Any:
        """The gdb.Value or SBValue of the object, in these debuggers."""
        return self._prb_program.native(self)

    def __getattr__(self, name):
        # Underscored twice, Python and its tools look for methods that nothing of the target has.
        if name[:2] == "__" and name not in _ASKED:
            raise AttributeError(name)
        if name in _LAZY:  # of a Value made by unread()
            self._prb_read(lib.SELF, self)
            return object.__getattribute__(self, name)
        if name not in _DICT_METHODS:
            return self._prb_read(lib.ATTRIBUTE, None, name.encode("utf-8", "surrogateescape"))
        return self._prb_method(name)

    def _prb_method(self, name):
        """One of dict; a snapshot may lack what would find it there."""
        try:
            found = self._prb_read(lib.ATTRIBUTE, None, encode(name))
            mine = isinstance(found, Value)
        except (NotThere, Gone):
            if self.type.name not in _DICTS:
                raise
            found, mine = None, True
        if mine and (self.type.name in _DICTS or self._prb_is_dict()):
            return lambda *arguments: _DICT_METHODS[name](self, *arguments)
        return found

    def _prb_is_dict(self):
        return any(key is not None for key, _ in self._prb_each(first=True)) or \
            self.type.name in _DICTS

    def __dir__(self):
        return sorted({name for name, _ in attributes(self)} | set(object.__dir__(self)))

    def _prb_each(self, first=False):
        """[(key or None, value)] of a container."""
        program, found = self._prb_program, []
        outcome = ctypes.c_int32()

        def on_part(_, __, ___, key, value):
            found.append((key, value))
            return 1 if first else 0

        program._open()
        try:
            program._call(LIBRARY.probing_object_each, self.address, self._prb_type, 1,
                          lib.ON_PART(on_part), None, ctypes.byref(outcome), outcome=outcome)
        except NotThere:
            if first:
                return []
            raise NeedsCode("the items of a %s only code could tell: 'probing PID eval CODE' "
                            "runs code" % self.type.name)
        if outcome.value == lib.GONE and not first:
            raise Gone("it was changing while it was read")
        # Each is read on use, so a vanished one does not spoil the others.
        return [(unread(program, key, 0) if key else None, unread(program, value, 0))
                for key, value in found]

    def __iter__(self):
        if self._prb_kind == lib.STRING:
            return iter(str(self))
        return iter([value if key is None else key for key, value in self._prb_each()])

    def __len__(self):
        return self._prb_read(lib.LENGTH)

    def __getitem__(self, key):
        if isinstance(key, Value):
            known, constant = key._prb_constant()
            if not known:
                raise NeedsCode("an item is found by a number or a text")
            key = constant
        if isinstance(key, bool) or not isinstance(key, (int, str)):
            raise NeedsCode("an item is found by a number or a text, not by %r" % (key,))
        if isinstance(key, str):
            return self._prb_read(lib.KEY, name=encode(key))
        return self._prb_read(lib.INDEX, index=key)

    def __contains__(self, wanted):
        if self._prb_kind == lib.STRING:
            return wanted in str(self)
        return any(wanted == each for each in self)

    def __bool__(self):
        known, constant = self._prb_constant()
        if known:
            return bool(constant)
        if self._prb_has("__bool__"):
            raise NeedsCode("the __bool__ of %s is code" % self.type.name)
        return len(self) > 0 if self._prb_has("__len__") else True

    def _prb_has(self, name):
        try:
            self._prb_ask(lib.ATTRIBUTE, encode(name))
        except NotThere:
            return False
        return True

    def _prb_compared(self, other):
        if isinstance(other, Value):
            if other.address == self.address and other._prb_program is self._prb_program:
                return 0, 0
            known, other = other._prb_constant()
            if not known:
                raise NeedsCode("objects of a target are compared by code; .address tells them "
                                "apart")
        known, mine = self._prb_constant()
        if not known and other is not None and not isinstance(other, (int, float, str)):
            raise NeedsCode("a %s is compared by code" % self.type.name)
        return (mine, other) if known else (self, Value)

    def __eq__(self, other):
        mine, other = self._prb_compared(other)
        return False if mine is self else mine == other

    def __lt__(self, other):
        mine, other = self._prb_ordered(other)
        return mine < other

    def __le__(self, other):
        mine, other = self._prb_ordered(other)
        return mine <= other

    def __gt__(self, other):
        mine, other = self._prb_ordered(other)
        return mine > other

    def __ge__(self, other):
        mine, other = self._prb_ordered(other)
        return mine >= other

    def _prb_ordered(self, other):
        pair = self._prb_compared(other)
        if pair[0] is self:
            raise NeedsCode("a %s is compared by code" % self.type.name)
        return pair

    def __hash__(self):
        known, constant = self._prb_constant()
        return hash(constant) if known else hash(self.address)

    def _prb_number_of(self, kind):
        known, constant = self._prb_constant()
        if not known:
            raise NeedsCode("only code could make a %s a number" % self.type.name)
        return kind(constant)

    def __int__(self):
        return self._prb_number_of(int)

    def __index__(self):
        known, constant = self._prb_constant()
        if not known or not isinstance(constant, int):
            raise TypeError("this is no integer")
        return int(constant)

    def __float__(self):
        return self._prb_number_of(float)

    def __str__(self):
        known, constant = self._prb_constant()
        return str(constant) if known else repr(self)

    def __repr__(self):
        known, constant = self._prb_constant()
        if known:
            return repr(constant)
        text = None
        if extend.PRINTERS:
            self._prb_program._extend()  # for the objects in it
            text = extend.text_of(self)
        return self._prb_text(lib.REPR) if text is None else text


def unread(program, address, type_address):
    """A Value of an object that is known to be of that class; nothing is read yet."""
    value = object.__new__(Value)
    value._prb_program, value.address, value._prb_type = program, address, type_address
    return value


def of_instant(program, address, type_address, number):
    """A Value of a variable, whose number is that of the instant at which its frame was read."""
    value = unread(program, address, type_address or 0)
    if number is not None and type_address:
        if type_address not in program._kinds:
            program._kinds[type_address] = _number_kind(program, type_address)
        if program._kinds[type_address]:
            value._prb_kind, make = program._kinds[type_address]
            value._prb_number = make(number)
    return value


def _number_kind(program, type_address):
    """The entry of a class in _NUMBERS, or None.

    A class that cannot be read has none. Reading the value reports why.
    """
    try:
        return _NUMBERS.get(Value(program, type_address).__name__)
    except (Gone, NotThere):
        return None


def get(value: Value, name: str) -> Any:
    """The attribute of a Value, also one that has the name of a member of the class Value."""
    return value._prb_read(lib.ATTRIBUTE, name=encode(name))


def attributes(value: Value) -> List[Tuple[str, Any]]:
    """[(name, Value)] of what an object has in its __dict__ and its slots."""
    program, found = value._prb_program, []
    outcome = ctypes.c_int32()

    def on_part(_, name, text, __, address):
        found.append((decode(name), text and decode(text), address))
        return 0

    program._open()
    program._call(LIBRARY.probing_object_each, value.address, value._prb_type, 0, lib.ON_PART(on_part),
                  None, ctypes.byref(outcome), outcome=outcome)
    if outcome.value == lib.GONE:
        raise Gone("it was changing while it was read")
    return [(name, Value(program, address) if address else literal(text))
            for name, text, address in found]


_DICTS = ("dict", "OrderedDict", "defaultdict", "Counter")
_NUMBERS = {"int": (lib.INT, int), "bool": (lib.BOOL, bool), "float": (lib.FLOAT, float)}
_LAZY = frozenset(("_prb_kind", "_prb_number"))
_ASKED = frozenset(("__name__", "__qualname__", "__module__", "__dict__", "__doc__", "__mro__",
                    "__code__", "__file__", "__class__", "__cause__", "__context__",
                    "__traceback__", "__self__", "__func__", "__wrapped__"))


def _get(value, key, default=None):
    try:
        return value[key]
    except NotThere:
        return default


_DICT_METHODS = {
    "items": lambda value: value._prb_each(),
    "keys": lambda value: [key for key, _ in value._prb_each()],
    "values": lambda value: [item for _, item in value._prb_each()],
    "get": _get,
}
