# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands, tables, texts of values, words for waits and rules, of your own."""

import argparse
import inspect
import re
import sys
from typing import Any, Callable, Optional, Sequence

from ._errors import Error

COMMANDS, TABLES, PRINTERS, WAITS, RULES = {}, {}, {}, {}, {}
NAME = re.compile(r"[a-z][a-z0-9_-]*$")


def command(function: Optional[Callable] = None, name: Optional[str] = None) -> Callable:
    """A subcommand: `probing NAME TARGET [OPTIONS]`, and `probing NAME` in gdb and LLDB.

    The function is called with the target; its other parameters are arguments, or options if they
    have a default: a flag for False, a number for a number. The docstring is the help.
    """
    if function is None:
        return lambda each: command(each, name)
    made = Command(function, name or function.__name__.strip("_").replace("_", "-"))
    COMMANDS[made.name] = made
    if "probing_debugger" in sys.modules:
        from .target import debugger
        debugger("a command").add_command(made)
    return function


def table(name: Any, schema: Any = None, columns: Optional[Sequence[str]] = None) -> Any:
    """A table of SQL for p.query() and `probing query`: `@probing.table("sessions")`
    before a generator of rows, which are dictionaries, or sequences in the order of `columns`.

    With a `schema`, the table `user.NAME` of this process: {"layer": str} or "layer text". The same from
    a dataclass: `@probing.table` before it, or `@probing.table("losses")`; each object then has append().
    """
    if isinstance(name, type):
        from ._rings import of_dataclass
        return of_dataclass(name, name.__name__.lower())
    if schema is not None:
        from ._rings import table as own_table
        return own_table(name, schema)
    if not NAME.match(name) or "-" in name:
        raise Error("'%s' is no name of a table: letters, digits and _" % name)

    def register(function):
        if isinstance(function, type):
            from ._rings import of_dataclass
            return of_dataclass(function, name)
        TABLES[name] = function, columns
        return function
    return register


def printer(name: str) -> Callable:
    """The text of objects of a class, `@probing.printer("mypkg.Matrix")` before a function of a
    Value: what `probing print`, dumps, tables and repr() show of it."""
    def register(function):
        PRINTERS[name] = function
        return function
    return register


def wait(place: str) -> Callable:
    """Words for a wait, `@probing.wait("mylib.py:Pool.acquire")` before a function of the Frame: what
    Thread.waits_for.text, dumps and tables say while the thread is in that function. None: no words
    this time."""
    file, _, function = place.rpartition(":")
    if not file or not function:
        raise Error("'%s' is no place: for example 'mylib.py:Pool.acquire'" % place)

    def register(words):
        WAITS.setdefault(function, []).append((file, words))
        return words
    return register


def rule(name: str) -> Callable:
    """A rule of `probing why`: `@probing.rule("full-queue")` before a generator of what is wrong with the
    Program. A finding is a sentence, or a dictionary with "sentence" and, if there is more to say, "evidence" (lines),
    "confidence" ("medium"; else "low"), "wrong_if" and "next" (a command)."""
    if not NAME.match(name):
        raise Error("'%s' is no name of a rule" % name)

    def register(function):
        RULES[name] = function
        return function
    return register


class Command:
    """A function as a subcommand."""

    def __init__(self, function, name):
        if not NAME.match(name):
            raise Error("'%s' is no name of a command" % name)
        self.function, self.name = function, name
        self.doc = inspect.getdoc(function) or ""

    @property
    def summary(self):
        return self.doc.split("\n")[0]

    def parser(self, target=True):
        """Of the words behind the name. `target`: whether the first argument is the target."""
        parser = argparse.ArgumentParser(
            prog="probing " + self.name, description=self.doc,
            formatter_class=argparse.RawDescriptionHelpFormatter)
        if target:
            parser.add_argument("_target", metavar="TARGET", help="also as -t TARGET: pid, core "
                                "file, snapshot, /regex/ or host:port")
        for each in list(inspect.signature(self.function).parameters.values())[1:]:
            add_argument(parser, each)
        return parser

    def parse(self, words, target=True):
        """What the parser finds; arguments may stand between options."""
        parser = self.parser(target)
        return getattr(parser, "parse_intermixed_args", parser.parse_args)(words)

    def run(self, program, settings):
        """Calls the function with what the parser has found."""
        words = {key: value for key, value in vars(settings).items() if not key.startswith("_")}
        return self.function(program, **words)


def add_argument(parser, parameter):
    default, kind = parameter.default, parameter.annotation
    if kind is inspect.Parameter.empty or not callable(kind):
        kind = type(default) if default not in (inspect.Parameter.empty, None) else str
    if default is inspect.Parameter.empty:
        parser.add_argument(parameter.name, type=kind)
        return
    option = "--" + parameter.name.replace("_", "-")
    if isinstance(default, bool):
        parser.add_argument(option, dest=parameter.name, help=" ",
                            action="store_false" if default else "store_true")
    else:
        parser.add_argument(option, dest=parameter.name, type=kind, default=default,
                            help="default: %s" % default)


def printer_of(value):
    """The printer of the value's class, or None."""
    kind = value.type
    for name in (kind.qualname, kind.name):
        function = PRINTERS.get("%s.%s" % (kind.module, name))
        if function:
            return function
    return None


def text_of(value):
    """What a printer shows of the value; None: there is none for its class."""
    function = printer_of(value)
    return function and str(function(value))


def waits_in(file, func, qualname):
    """The functions of wait() for that function of the target."""
    return [words for place, words in WAITS.get(qualname, WAITS.get(func, ()))
            if file == place or (file or "").endswith("/" + place)]


def words_of(thread):
    """What a function of wait() says of the thread."""
    for frame in thread.frames:
        for words in waits_in(frame.file, frame.func, frame.qualname):
            text = words(frame)
            if text is not None:
                return str(text)
    return None
