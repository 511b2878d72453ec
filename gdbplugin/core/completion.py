# SPDX-License-Identifier: GPL-3.0-or-later
"""What the word that the user is typing may become, in any command.

Nothing of the program runs for it: names and attributes are read from outside, as everything else.
Whatever goes wrong, there is nothing to offer, and no message in the middle of a line.
"""

import ast
import os
import re

from .command import open_session
from .debugger import FORMATS
from .errors import Problem
from .frames import selected

MOST = 2000  # that are offered
TEXT_MAX = 1 << 20  # bytes of a list of names
_TABLES = "SELECT table_schema || '.' || table_name AS name FROM information_schema.tables"
_COLUMNS = "SELECT DISTINCT column_name AS name FROM information_schema.columns"
_CODES = "SELECT DISTINCT file, qualname, func FROM python.stacks WHERE file LIKE '/%'"
_MODULES = "SELECT name, file FROM python.modules"
_THREADS = "SELECT tid FROM python.threads"
WORDS = ("SELECT", "FROM", "WHERE", "JOIN", "GROUP BY", "ORDER BY", "LIMIT", "SHOW TABLES",
         "DESCRIBE")
# The last thing that is typed of an expression: names, with constant indexes between them.
_PATH = re.compile(r"((?:[^\W\d]\w*(?:\[(?:-?\d+|'[^']*'|\"[^\"]*\")\])*\.)*)(\w*)$")


class Typed:
    """The words before the cursor: the complete ones, and the one being typed."""

    def __init__(self, cls, text):
        self.words = text.split(" ")
        self.last = self.words.pop()
        self.option = None  # whose value the last word is
        self.rest = ""  # the argument, with the last word
        words = [word for word in self.words if word]
        while words and words[0].startswith("-"):
            option = next((each for each in cls.options if words[0] in spellings(each)), None)
            if words.pop(0) == "--":
                break
            if option and option.metavar:
                self.option = None if words else option
                words = words[1:]
        self.begins = not words and self.option is None
        self.rest = " ".join(words + [self.last])


def spellings(option):
    return ["--" + option.name] + (["-" + option.short] if option.short else [])


def complete(debugger, cls, text):
    """(word, [what it may be]) for the @text behind the name of a command."""
    typed = Typed(cls, text.lstrip())
    if typed.begins and typed.last.startswith("-"):
        found = [word for each in cls.options for word in spellings(each)]
    else:
        kind = typed.option.values if typed.option else cls.argument
        try:
            found = KINDS[kind](debugger, typed) if kind else []
        except Problem:
            found = []
    return typed.last, sorted({each for each in found if each.startswith(typed.last)})[:MOST]


def rows(debugger, sql, needs_process=True):
    with open_session(debugger, needs_process) as session:
        return session.query(sql)


def files(debugger, typed):
    folder, name = os.path.split(typed.last)
    try:
        found = sorted(os.listdir(os.path.expanduser(folder) or "."))
    except OSError:
        return []
    return [os.path.join(folder, each) + ("/" if os.path.isdir(
        os.path.expanduser(os.path.join(folder, each))) else "")
            for each in found if each.startswith(name)]


def tables(debugger, typed):
    return [row["name"] for row in rows(debugger, _TABLES, False)]


def sql(debugger, typed):
    if not typed.last:
        return list(WORDS)
    columns = rows(debugger, _COLUMNS, False)
    head = typed.last[:len(typed.last) - len(re.search(r"[\w.]*$", typed.last).group())]
    upper = typed.last.upper() == typed.last
    names = tables(debugger, typed) + [row["name"] for row in columns]
    names += [word if upper else word.lower() for word in WORDS]
    return [head + name for name in names]


def threads(debugger, typed):
    return [str(row["tid"]) for row in rows(debugger, _THREADS)]


def formats(debugger, typed):
    return list(FORMATS)


def places(debugger, typed):
    """Files of the modules that are imported and of what runs, before ':' and a line; functions."""
    names = set()
    for row in rows(debugger, _CODES):
        names.update((os.path.basename(row["file"]) + ":", row["file"] + ":",
                      row["qualname"] or row["func"] or ""))
    for row in rows(debugger, _MODULES):
        if row["file"] and row["file"].endswith(".py"):
            names.update((os.path.basename(row["file"]) + ":", row["file"] + ":"))
        names.add(row["name"] + ":")
    return [name for name in names if name.isprintable()]


def expression(debugger, typed):
    """Names of the selected frame, or attributes of the expression before the last dot."""
    found = _PATH.search(typed.last)
    before, tid = typed.last[:found.start()], debugger.thread()
    if tid is None or not debugger.all_stopped():
        return []
    owner = found.group(1)[:-1]
    with open_session(debugger) as session:
        session.set("probing.text.max", TEXT_MAX)
        depth = selected(debugger)
        names = attributes(session, tid, depth, owner) if owner else \
            visible(session, tid, depth)
    wanted = found.group(2)
    return [before + found.group(1) + name for name in names
            if wanted.startswith("_") or not name.startswith("_")]


def attributes(session, tid, depth, owner):
    return listed(session.look_up(tid, depth, "dir(%s)" % owner)[1])


def visible(session, tid, depth):
    """Of the frame, its module, and the builtins."""
    names = [row["name"] for row in session.query(
        "SELECT name FROM python.locals WHERE tid = %d AND depth = %d" % (tid, depth))]
    for module in (read_name(session, tid, depth), "builtins"):
        if module:
            names += attributes(session, tid, depth, "sys.modules[%r]" % module)
    return [name for name in names if name.isidentifier()]


def read_name(session, tid, depth):
    """Of the module that the frame's code belongs to."""
    try:
        return ast.literal_eval(session.look_up(tid, depth, "__name__")[1])
    except (Problem, ValueError, SyntaxError):
        return None


def listed(text):
    """The names in a list as it is printed, of which the end may be cut."""
    return re.findall(r"'([^'\\]+)'", text)


KINDS = {"file": files, "table": tables, "sql": sql, "thread": threads, "format": formats,
         "place": places, "expression": expression}
