# SPDX-License-Identifier: GPL-3.0-or-later
"""What `probing script` runs: [--script FILE]… [--entry-points] KIND [TEXT] [TARGET [ARGUMENT…]].

KIND is -f for a file, or for the name of a script that comes with the package; -c for code; -i for
the prompt; -l lists scripts and commands; -x runs a command of an extension with all that follows; -s
answers questions of a command on the socket of that number.
"""

import argparse
import ast
import os
import sys
import traceback

import probing
import probing_startup
from probing import _load, _terminal, extend
from probing import target as _target

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "scripts")
NO_COMMAND = 2


def listed():
    """Pairs of the name and the first line of each script that comes with the package."""
    for file in sorted(os.listdir(SCRIPTS)):
        if file.endswith(".py"):
            with open(os.path.join(SCRIPTS, file), encoding="utf-8") as opened:
                text = ast.get_docstring(ast.parse(opened.read()))
            yield file[:-len(".py")], text.splitlines()[0]


def is_ours(text):
    """Whether it is the name of a script that comes with the package."""
    return not os.path.dirname(text) and os.path.exists(os.path.join(SCRIPTS, text + ".py"))


def read(text):
    """(path, code) of a script: one of ours by its bare name, or a file."""
    path = os.path.join(SCRIPTS, text + ".py") if is_ours(text) else text
    if not is_ours(text):
        sys.path.insert(1, os.path.dirname(os.path.abspath(text)))
    with open(path, "rb") as file:
        return path, file.read()


def main(words):
    _terminal.install()
    try:
        words = load(words)
        if words[0] == "-s":
            from . import _answers
            return _answers.serve(int(words[1]))
        if words[0] == "-x":
            return run_command(words[1], words[2:])
        if words[0] == "-l":
            for name, line in list(listed()) + [(each.name, each.summary)
                                                for _, each in sorted(extend.COMMANDS.items())]:
                print("%-14s %s" % (name, line))
            return None
        if words[0] == "-i":
            from . import _prompt
            return _prompt.run(attached(words[1] if len(words) > 1 else ""))
        kind, text, target = words[:3]
        if kind == "-f" and text in extend.COMMANDS and not os.path.exists(text):
            return run_command(text, ([target] if target else []) + words[3:])
        name, code = read(text) if kind == "-f" else ("<code>", text)
        sys.argv = [text if kind == "-f" else name] + words[3:]
        return run(compile(code, name, "exec"), name, attached(target), kind == "-f" and is_ours(text))
    except (OSError, probing.Error, SyntaxError) as error:
        sys.exit("probing: %s" % error)


def load(words):
    """Loads the extensions; the words that are left."""
    words = list(words)
    _load.load_folder()
    while words[0] in ("--script", "--entry-points"):
        if words.pop(0) == "--entry-points":
            _load.load_entry_points()
        else:
            load_file(words.pop(0))
    return words


def load_file(path):
    """Loads a file that the user named; if it fails, nothing else is done."""
    with open(path, "rb") as file:
        text = file.read()
    guarded(lambda: _load.run(text, path))


def attached(target):
    return _target.now_current(probing.attach(target)) if target else None


def run_command(name, words):
    """A command of an extension, with its own words and the target among them."""
    found = extend.COMMANDS.get(name)
    if found is None:
        sys.stderr.write("probing: there is no command '%s': 'probing help' lists them, and 'probing "
                         "script --list' those of extensions\n" % name)
        sys.exit(NO_COMMAND)
    before = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    before.add_argument("-t", "--target", "-p", "--pid", dest="target",
                        default=probing_startup.variable("PROBING_TARGET"))
    known, words = before.parse_known_args(words)
    settings = found.parse(words, target=not known.target)
    target = known.target or settings._target
    return guarded(lambda: found.run(attached(target), settings))


def namespace(program):
    return {"__name__": "__main__", "p": program, "probing": probing}


def run(code, name, program, ours=False):
    """Runs it; an exception is one traceback, of the script's own frames. What a script of the package cannot read is a line."""
    guarded(lambda: exec(code, dict(namespace(program), __file__=name)), (probing.Error,) if ours else ())


def guarded(function, plain=()):
    try:
        result = function()
    except SystemExit:
        raise
    except plain as error:
        sys.exit("probing: %s" % error)
    except BaseException as error:
        show(error)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    sys.stdout.flush()
    if result is not None and result is not True:
        sys.exit(result if isinstance(result, int) else str(result))


def is_shown(frame):
    """Whether a frame is none of the package's own, but for its scripts."""
    folder = os.path.dirname(os.path.abspath(frame.filename))
    return folder != HERE and not frame.filename.endswith("/code.py")


def show(error):
    """One traceback; what happened before in our own frames is no news."""
    if isinstance(error, KeyboardInterrupt):
        return sys.stderr.write("probing: interrupted\n")
    sys.stdout.flush()
    told = traceback.TracebackException(type(error), error, error.__traceback__)
    frames = [frame for frame in told.stack if is_shown(frame)]
    lines = traceback.format_list(frames)
    if lines:
        sys.stderr.write("Traceback (most recent call last):\n%s" % "".join(lines))
    sys.stderr.write("".join(told.format_exception_only()))
    return None
