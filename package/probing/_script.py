# SPDX-License-Identifier: GPL-3.0-or-later
"""What `probing script` runs: KIND TEXT TARGET [ARGUMENT…], KIND is -f for a file, or for the name
of a script that comes with the package, -c for code; -l lists these scripts."""

import ast
import os
import sys
import traceback

import probing
from probing import target as _target

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")


def listed():
    """Pairs of the name and the first line of each script that comes with the package."""
    for file in sorted(os.listdir(SCRIPTS)):
        if file.endswith(".py"):
            with open(os.path.join(SCRIPTS, file), encoding="utf-8") as opened:
                text = ast.get_docstring(ast.parse(opened.read()))
            yield file[:-len(".py")], text.splitlines()[0]


def read(text):
    """The code of a script: one of ours by its bare name, or a file."""
    ours = os.path.join(SCRIPTS, text + ".py")
    if os.path.dirname(text) or not os.path.exists(ours):
        sys.path.insert(1, os.path.dirname(os.path.abspath(text)))
        ours = text
    with open(ours, "rb") as file:
        return file.read()


def main(words):
    if words[0] == "-l":
        for name, line in listed():
            print("%-14s %s" % (name, line))
        return
    kind, text, target = words[:3]
    name = text if kind == "-f" else "<code>"
    sys.argv = [name] + words[3:]
    try:
        program = _target.now_current(probing.attach(target)) if target else None
        run(compile(read(text) if kind == "-f" else text, name, "exec"), name, program)
    except (OSError, probing.Error, SyntaxError) as error:
        sys.exit("probing: %s" % error)


def run(code, name, program):
    """Runs it; an exception is one traceback, of the script's own frames."""
    try:
        exec(code, {"__name__": "__main__", "__file__": name, "p": program, "probing": probing})
    except SystemExit:
        raise
    except BaseException as error:
        traceback.print_exception(type(error), error, error.__traceback__.tb_next)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
