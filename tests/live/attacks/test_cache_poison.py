# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's file claims by its build-id to be another one, and contains wrong data. Root's results for it
must not be used for the other file."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import support
from environment import OK
from files_support import (  # noqa: F401 (fixtures)
    FRAME, PYTHON, USER, folder, give, needs_root, program, run, theirs, tool)

pytestmark = needs_root

# The eval loop's unit, where all types are looked for.
WRONG = """
struct _ts { char odd[100000]; unsigned long thread_id; unsigned long native_thread_id; void *next; };
struct _ts poison;
"""
HARMLESS = "struct nothing { int member; }; struct nothing harmless;"
DEBUG = (".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_line")


def python_that_says(theirs, source):
    """A copy of the Python with debug information for it, that has its build-id."""
    unit, made = theirs / "ceval.c", theirs / "ceval.so"
    unit.write_text(source)
    tool("cc", "-g", "-shared", "-fPIC", "-o", made, unit)
    path, words = theirs / "python", []
    for name in DEBUG:
        content = theirs / name[1:]
        done = subprocess.run(["objcopy", "-O", "binary", "--only-section=" + name,
                               "--set-section-flags", name + "=alloc", made, content],
                              stderr=subprocess.DEVNULL, check=False)
        if not done.returncode and content.exists() and content.stat().st_size:
            words += ["--add-section", "%s=%s" % (name, content)]
    tool("objcopy", *words, os.path.realpath(PYTHON), path)
    return give(path)


def look(pid, cache, *words, **options):
    return run("-t", pid, "debug", "--dump", *words,
               env=dict(os.environ, XDG_CACHE_HOME=str(cache)), **options)


def kept(cache, purpose):
    return sorted(path.name for path in Path(cache).glob("**/*.%s" % purpose))


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, check=True).stdout
    return notes.decode().partition("Build ID: ")[2].split()[0]


def test_layout_of_a_false_python(folder, theirs):
    false, cache = python_that_says(theirs, WRONG), folder / "cache"
    assert build_id(false) == build_id(os.path.realpath(PYTHON))
    with program(FRAME, "a.py", python=false) as process:
        if look(process.pid, cache).returncode == OK:
            pytest.skip("this Python is not in its own file")
    assert build_id(false) + ".layout" not in kept(cache, "layout")
    with program(FRAME, "a.py") as process:
        done = look(process.pid, cache)
        assert done.returncode == OK and b"a.py" in done.stdout, done


def test_layout_of_a_users_own_python(theirs):
    """Cached by that user, who owns the file."""
    own, cache = python_that_says(theirs, HARMLESS), theirs / "cache"
    binary = shutil.copy(support.BINARY, theirs / "probing")
    with program(FRAME, "a.py", python=own) as process:
        done = subprocess.run(
            [binary, "-t", str(process.pid), "debug", "--dump"], user=USER, group=USER,
            extra_groups=[], env=dict(os.environ, XDG_CACHE_HOME=str(cache)), cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if b"ptrace_scope" in done.stderr:
        pytest.skip("users may not read their own processes here")
    assert done.returncode == OK, done
    assert build_id(own) + ".layout" in kept(cache, "layout")


HOLD = """
#include <unistd.h>
__attribute__((noinline)) int NAME(void) { return pause(); }
int enter(void) { return NAME() + 1; }
"""
ENTER = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
library.enter()
"""


def library(folder, name):
    (folder / "hold.c").write_text(HOLD)
    path = folder / "libhold.so"
    tool("cc", "-g", "-O1", "-shared", "-fPIC", "-fno-optimize-sibling-calls",
         "-DNAME=%s" % name, "-Wl,--build-id=0x7072626174746163", "-o", path, folder / "hold.c")
    path.chmod(0o755)
    return path


def test_functions_of_a_false_library(folder, theirs):
    false, real = library(theirs, "they_lie"), library(folder, "the_truth")
    give(false)
    cache = folder / "cache"
    for path, name in ((false, b"they_lie"), (real, b"the_truth")):
        with program(ENTER, str(path)) as process:
            support.wait_for_sleep(process.pid, "pause", timeout=60)
            done = look(process.pid, cache, "--native")
            assert done.returncode == OK and name in done.stdout, done
    names = [name.split("-")[0].split(".")[0] for name in kept(cache, "lines")]
    assert names.count("7072626174746163") == 2, "the cached data of both files is mixed"
