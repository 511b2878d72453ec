# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the user's own, made with the package (`@probing.command`), as commands of a debugger."""

import os
import sys

from . import commands
from .command import Command
from .errors import Problem


def load(debugger):
    """Loads the files of ~/.config/probing, if there are any, and makes their commands."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    if os.path.isdir(os.path.join(base, "probing")):
        try:
            from probing import _load
            _load.load_folder(debugger.warn)
        except (Problem, ImportError) as error:
            debugger.warn("extensions are not loaded: %s" % error)


def add(debugger, made):
    """Called by @probing.command."""
    class Made(Command):
        name, summary, usage = made.name, made.summary, "[OPTIONS]"

        @classmethod
        def help(cls):
            return made.parser(False).format_help().rstrip()

        def run(self, debugger, words):
            run(debugger, made, words)

    known = made.name in commands.ADDED
    if made.name in commands.NAMES:
        raise Problem("there is a command '%s' already" % made.name)
    commands.ADDED[made.name] = Made
    if not known:
        debugger.add_command(made.name)


def run(debugger, made, words):
    import contextlib  # here: they are not loaded before they are wanted
    import io
    import shlex

    import probing
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            settings = made.parse(shlex.split(words), target=False)
    except ValueError as error:
        raise Problem(str(error))
    except SystemExit as ended:
        if ended.code:
            raise Problem(said.getvalue().strip().splitlines()[-1])
        return
    try:
        made.run(probing.current(), settings)
    except probing.Error as error:
        raise Problem(str(error))


def speak(debugger, pointer):
    """Has the extensions that are loaded speak in what a session prints; keep what it returns."""
    extend = sys.modules.get("probing.extend")
    if extend is None or not (extend.PRINTERS or extend.WAITS or extend.TABLES):
        return None
    from probing import _custom

    from . import library, script
    return _custom.attach(pointer, script.current(debugger)._another, debugger.warn, library.LIBRARY)
