# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of all kinds that an expression can reach; prints {expression: repr()} and sleeps."""
import collections
import enum
import json
import os
import sys

SHARED = {"rows": [1, (2, 3)], 7: "seven", -1: "minus", 2 ** 80: "large", "it's": None}
descriptor = os.pipe()[0]


def rows_of(name, values):
    for row in values:
        yield name, row


def raises(value):
    raise ValueError(value)


class Base(object):
    limit = 10
    table = {"base": [0]}


class Slotted(Base):
    __slots__ = ("left", "right")

    def __init__(self):
        self.left = [True]


class Lazy(object):
    """A descriptor of the program that does not decide what is set."""

    def __get__(self, instance, owner):
        raise RuntimeError("code of the program ran")


class Coded(object):
    """All that it has is code."""

    def __getattr__(self, name):
        raise RuntimeError("code of the program ran")

    __getitem__ = __len__ = __getattr__


class Colour(enum.Enum):
    red, green = 1, "g"


class Computed(enum.Enum):
    one = 1
    value = property(lambda self: "computed")


class Node(Base):
    kind = "node"
    doubled = property(lambda self: [2])
    lazy = Lazy()

    def __init__(self):
        self.items = [[1], [2, "two"]]
        self.named = {"key": {"inner": (None, 2.5)}}
        self.slotted = Slotted()
        self.ordered = collections.OrderedDict([("a", 1)])
        self.coded = Coded()
        self.queue = collections.deque(range(200), 150)
        self.user = collections.UserDict(key=[7])
        self.error = ValueError("reason", 3)
        self.colour, self.computed = Colour.green, Computed.one
        self.Pair = collections.namedtuple("Pair", "x y")(3, 4)

    def method(self, argument):
        seen = {"argument": argument}
        free, slice_ = SHARED, slice(1, 5)
        rows = rows_of("table", [5, 6])
        next(rows)
        try:
            raises("given")
        except ValueError as error:
            caught = error

        def inner(cell=argument):
            return free, cell

        expressions = """
            self.kind self.limit self.items self.items[0] self.items[1][1] self.items[-1][0]
            self.named['key'] self.named["key"]['inner'][1] self.slotted.left[0] self.slotted.limit
            self.slotted.table['base'] self.ordered['a'] self.Pair[1] argument seen seen['argument']
            free[7] free[-1] free["it's"] SHARED['rows'][1][0] Node.kind Node.limit Base.table
            self.__class__ self.slotted.__class__ Node.__class__ Node.__mro__ self.__class__.kind
            self.__class__.__name__ Node.__qualname__ Node.__module__ self.method.__code__.co_name
            len(free) len(self.items) len(self.queue) len(argument) len(self.ordered) len(self.user)
            type(self) type(self).__name__ type(self.Pair).__mro__[1] type(type(self)) len(self.Pair)
            self.queue[0] self.queue[-1] self.queue[77] self.user['key'][0] self.error.args[1]
            self.error.__cause__ slice_.start slice_.stop vars(self.slotted) dir(self.slotted)
            vars(self.user) self.user.__dict__ dir(os.path) self.method.__code__.co_argcount
            self.colour.value self.colour.name Colour.red.value
            rows.gi_frame.f_locals['row'] rows.gi_frame.f_locals rows.gi_frame.f_lineno
            rows.gi_frame.f_code.co_name rows.gi_code.co_name rows.gi_running
            rows.gi_frame.f_globals['SHARED']['rows']
            caught.__traceback__.tb_next.tb_frame.f_locals['value']
            caught.__traceback__.tb_next.tb_frame.f_lineno
            os.sep sys.maxsize collections.OrderedDict len None.__doc__[0] int str.__name__
            """.replace("None.__doc__[0]", "").replace("str.__name__", "").split()
        if sys.version_info < (3, 11):  # a dict in another order
            expressions.remove("rows.gi_frame.f_locals")
        truth = {}
        for expression in expressions:
            truth[expression] = repr(eval(expression, globals(), locals()))
        print(json.dumps(truth))
        sys.stdout.flush()
        os.read(descriptor, 1)
        del seen
        later = inner
        return later


Node().method("given")
