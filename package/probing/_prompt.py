# SPDX-License-Identifier: GPL-3.0-or-later
"""The prompt of `probing script TARGET`: Python with `p` in it, completion and history."""

import ast
import builtins
import code
import keyword
import os
import re
import stat
import sys

import probing

from . import _library as lib
from . import _script
from .value import Value

NAMED = re.compile(r"(.*)\.(\w*)$", re.S)
KEYED = re.compile(r"(.*)\[(['\"])([^'\"]*)$", re.S)
READ = (ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Load, ast.Constant, ast.UnaryOp,
        ast.USub) + tuple(getattr(ast, each) for each in ("Index", "Num", "Str")
                          if hasattr(ast, each))
MARKS = " \t\n`~!@#$%^&*=+{}\\|;:,<>?/()-"  # that end a word to complete; not . [ ] and quotes


class Completer:
    """For readline. Only names, attributes and items are looked at: nothing is called."""

    def __init__(self, names):
        self._names, self._found = names, []

    def complete(self, text, state):
        if state == 0:
            try:
                self._found = self.candidates(text)
            except Exception:
                self._found = []
        return self._found[state] if state < len(self._found) else None

    def candidates(self, text):
        keyed, named = KEYED.match(text), NAMED.match(text)
        if keyed:
            value = self._value(keyed.group(1))
            return ["%s[%s%s%s]" % (keyed.group(1), keyed.group(2), key, keyed.group(2))
                    for key in keys(value) if key.startswith(keyed.group(3))]
        if named:
            found = [name for name in names(self._value(named.group(1)))
                     if name.startswith(named.group(2))]
            return ["%s.%s" % (named.group(1), name) for name in found
                    if named.group(2).startswith("_") or not name.startswith("_")]
        known = list(self._names) + keyword.kwlist + dir(builtins)
        return sorted({name for name in known if text and name.startswith(text)})

    def _value(self, text):
        tree = ast.parse(text.strip(), mode="eval")
        if not all(isinstance(node, READ) for node in ast.walk(tree)):
            raise ValueError(text)
        return eval(compile(tree, "<completion>", "eval"), dict(self._names))


def names(value):
    if isinstance(value, Value):
        return sorted({name for name, _ in probing.attributes(value)} | {"type", "address", "native"})
    return dir(value)


def keys(value):
    found = value.keys() if hasattr(value, "keys") else ()
    return sorted(str(key) for key in found if isinstance(key, str) or
                  isinstance(key, Value) and key._prb_kind == lib.STRING)


def is_led_astray(path):
    """Whether another user's symbolic link is on the way, wherever links lead: the rule of base/way.h."""
    at, left, links = "/", os.path.join(os.getcwd(), path).split("/")[::-1], 0
    root = os.geteuid() == os.stat("/").st_uid == 0
    while left and links < 40:
        name = left.pop()
        here = os.path.dirname(at) if name == ".." else os.path.join(at, name)
        if name in ("", ".", "..") or not os.path.islink(here):
            at = here if name not in ("", ".") else at
            continue
        link, folder = os.lstat(here), os.stat(at)
        if link.st_uid not in (0, os.geteuid()) and (root or link.st_uid != folder.st_uid or folder.st_mode & 0o022):
            return True
        text, links = os.readlink(here), links + 1
        at = "/" if text.startswith("/") else at
        left += text.split("/")[::-1]
    return bool(left)


def history():
    """Path of a file that is ours alone; None if there can be none."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local/state")
    path = os.path.join(base, "probing", "script_history")
    try:
        if is_led_astray(path):
            return None
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        found = os.lstat(os.path.dirname(path))
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            return None
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            found = os.fstat(descriptor)
            own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return path if own else None


class Prompt(code.InteractiveConsole):
    """One traceback for what goes wrong, without our own frames."""

    def showtraceback(self):
        _script.show(sys.exc_info()[1])


def run(program):
    """Reads and runs lines until the end of the input."""
    space = _script.namespace(program)
    path = None
    try:
        import readline
        readline.set_completer(Completer(space).complete)
        readline.set_completer_delims(MARKS)
        readline.parse_and_bind("tab: complete")
        path = history()
        if path:
            readline.read_history_file(path)
            readline.set_history_length(1000)
    except (ImportError, OSError):
        pass
    typed = sys.stdin.isatty()
    if not typed:
        sys.ps1 = sys.ps2 = ""
    about = "p is %s; Tab completes, Ctrl-D ends" % (program.target if program else "not bound")
    try:
        Prompt(space).interact(banner=about if typed else "", exitmsg="")
    finally:
        if path:
            try:
                readline.write_history_file(path)
            except OSError:
                pass
