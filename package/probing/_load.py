# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads extensions: files of the user's own folder, named files, entry points of packages.

A user who can write such a file can run code as us. So the folder and its files must belong to us,
and no other user may write them; a link is not followed. A refused file is reported, and left out.
"""

import os
import stat
import sys
import traceback
import types

from ._errors import Error

GROUP = "probing"  # of entry points


def folder():
    """$XDG_CONFIG_HOME/probing"""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "probing")


def say(text):
    sys.stderr.write("probing: %s\n" % text)


def refusal(found):
    """Why what this stat result is of is not used; None: it is."""
    if found.st_uid != os.geteuid():
        return "it belongs to the user %d, and this one is %d" % (found.st_uid, os.geteuid())
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write it: 'chmod go-w' it"
    return None


def read_own(name, within):
    """The text of a file of a folder that is open; None if it is refused."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
                         dir_fd=within)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        why = refusal(found) if stat.S_ISREG(found.st_mode) else "it is no file"
        if why:
            raise OSError(0, why)
        return file.read()


def load_folder(say=say):
    """The *.py of the user's own folder, by name. A file that fails is shown, and left out."""
    path = folder()
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        return say("%s is not used: %s" % (path, error.strerror))
    try:
        why = refusal(os.fstat(opened))
        if why:
            return say("%s is not used: %s" % (path, why))
        for name in sorted(os.listdir(opened)):
            if name.endswith(".py"):
                load_own(name, os.path.join(path, name), opened, say)
    finally:
        os.close(opened)


def load_own(name, path, opened, say):
    try:
        run(read_own(name, opened), path)
    except OSError as error:
        say("%s is not used: %s" % (path, error.strerror))
    except Exception:
        say("%s failed, and is left out:\n%s" % (path, traceback.format_exc()))


def run(text, path):
    name = "probing_extension_" + os.path.basename(path)[:-len(".py")].replace("-", "_")
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)


def load_entry_points() -> None:
    """Loads what installed packages offer in the entry points "probing": commands, tables, texts.
    One that fails is shown, and left out. In gdb and LLDB: packages of their Python."""
    try:
        from importlib.metadata import entry_points
    except ImportError:
        raise Error("entry points need Python 3.8 or later")
    found = entry_points()
    found = found.select(group=GROUP) if hasattr(found, "select") else found.get(GROUP, ())
    for each in sorted(set(found), key=lambda each: (each.name, each.value)):
        try:
            each.load()
        except Exception:
            say("the entry point %s = %s failed, and is left out:\n%s" % (
                each.name, each.value, traceback.format_exc()))
