# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command is: a class with its help and a run(); a face makes a debugger's command of it."""

import os

from .errors import Problem


def open_session(debugger, needs_process=True, direct=True):
    """A session for the time of a `with`. Its module loads ctypes and the library, which takes longer
    than everything else, so not before the first command."""
    from .session import Session
    return Session(debugger, needs_process, direct)


class Option:
    """--NAME, or --NAME VALUE if it has a metavar."""

    def __init__(self, name, doc, metavar=None, short=None, values=None, choice=None, bare=False):
        self.name, self.doc, self.metavar, self.short = name, doc, metavar, short
        self.choice = choice  # --NAME=CHOICE is its only other form
        self.bare = bare  # its value may be missing
        self.values = values  # a kind of core/completion.py: what its value may be

    def spelling(self):
        text = "--" + self.name + (" " + self.metavar if self.metavar else "")
        text += "[=%s]" % self.choice if self.choice else ""
        return "-%s, %s" % (self.short, text) if self.short else text


class Command:
    """One command. Its module is imported when it is first run."""

    name = None
    summary = None  # one line, with full stop
    usage = ""  # what follows the name
    description = ""
    options = ()
    aliases = ()  # what else it may be called
    argument = None  # a kind of core/completion.py: what its argument may be

    def run(self, debugger, words):
        """Does it; `words` is what the user typed behind the name."""
        raise NotImplementedError

    @classmethod
    def help(cls):
        lines = [cls.summary, "Usage: probing %s %s" % (cls.name, cls.usage)]
        lines[-1] = lines[-1].rstrip()
        if cls.aliases:
            lines.append("Short: " + ", ".join("probing " + alias for alias in cls.aliases))
        if cls.description:
            lines += ["", cls.description.strip()]
        if cls.options:
            column = max(len(option.spelling()) for option in cls.options)
            lines.append("")
            lines += ["  %-*s  %s" % (column, option.spelling(), option.doc)
                      for option in cls.options]
        return "\n".join(lines)

    def parse(self, words):
        """({option: value}, what is left of the words): options stand first."""
        found, rest = {}, words.strip()
        while rest.startswith("-"):
            word, _, after = rest.partition(" ")
            word, equals, choice = word.partition("=")
            option = self._option(word)
            if equals and (option is None or choice != option.choice):
                raise Problem("%s has no option '%s=%s': 'help probing %s' lists them"
                              % (self.name, word, choice, self.name))
            rest = after.lstrip()
            if option is None:
                if word == "--":
                    break
                raise Problem("%s has no option '%s': 'help probing %s' lists them"
                              % (self.name, word, self.name))
            if option.metavar:
                value, _, rest = rest.partition(" ")
                if not value and option.bare:
                    value = True
                elif not value:
                    raise Problem("%s needs %s" % (word, option.metavar))
                found[option.name] = value
                rest = rest.lstrip()
            else:
                found[option.name] = choice or True
        return found, rest

    def _option(self, word):
        for option in self.options:
            if word == "--" + option.name or (option.short and word == "-" + option.short):
                return option
        return None

    def no_more(self, rest):
        if rest:
            raise Problem("%s: what does '%s' mean? See 'help probing %s'"
                          % (self.name, rest, self.name))


def read_file(path):
    """The text of a file of the user."""
    path = os.path.expanduser(path)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise Problem("%s cannot be read: %s" % (path, getattr(error, "strerror", error)))


def number(text, what):
    """A number that the user typed."""
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if value < 0:
        raise Problem("'%s' is no %s: a number is needed" % (text, what))
    return value
