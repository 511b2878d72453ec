# SPDX-License-Identifier: GPL-3.0-or-later
"""What `probing script` runs: KIND TEXT TARGET [ARGUMENT…], KIND is -f for a file, -c for code."""

import os
import sys
import traceback

import probing


def main(words):
    kind, text, target = words[:3]
    name = text if kind == "-f" else "<code>"
    sys.argv = [name] + words[3:]
    try:
        program = probing.attach(target) if target else None
        if kind == "-f":
            sys.path.insert(1, os.path.dirname(os.path.abspath(text)))
            with open(text, "rb") as file:
                text = file.read()
        run(compile(text, name, "exec"), name, program)
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
