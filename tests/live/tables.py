# SPDX-License-Identifier: GPL-3.0-or-later
"""Code shared by tests of tables: rows as dictionaries, and targets of all three kinds."""

import ctypes
import os
import resource
import signal
import subprocess
from pathlib import Path

import library
import pytest
import support


class Answer(list):
    """Rows of a query, each a dictionary, with the notes that came with them."""

    def __init__(self, rows, notes):
        super().__init__(rows)
        self.notes = notes

    def one(self):
        assert len(self) == 1, list(self)
        return self[0]

    def by(self, column):
        """{value of the column: row}; the values must differ."""
        found = {row[column]: row for row in self}
        assert len(found) == len(self), "%s is not unique" % column
        return found


def run(session, sql):
    """The rows of one statement."""
    statement, more = ctypes.c_void_p(), ctypes.c_int(1)
    library.check(library.LIBRARY.probing_prepare(
        session.pointer, sql.encode(), None, ctypes.byref(statement)))
    names = [library.LIBRARY.probing_column_name(statement, i).decode()
             for i in range(library.LIBRARY.probing_columns(statement))]
    before, rows = len(session.warnings), []
    while True:
        library.check(library.LIBRARY.probing_next(statement, ctypes.byref(more)))
        if not more.value:
            break
        rows.append(dict(zip(names, library.values(statement))))
    library.LIBRARY.probing_finish(statement)
    return Answer(rows, session.warnings[before:])


def query(target, sql):
    """The rows of one statement over a target; None for no target."""
    with library.Session(*([] if target is None else [target])) as session:
        return run(session, sql)


def core_of(pid, folder):
    """A core file of a live process."""
    subprocess.run(["gcore", "-o", folder / "core", str(pid)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / ("core.%d" % pid)


def kernel_core(interpreter, script, *arguments, folder):
    """The core file that the kernel writes of a program when it has said that it is ready, and the
    pid it had. gcore stops short at the guard pages that newer C libraries put into stacks."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern != "core":
        pytest.skip("cores of the kernel go to %r here" % pattern)
    limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with support.Program([interpreter.exe, script, *arguments], env=interpreter.env, cwd=folder,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, limit)
                         ) as process:
        process.line()
        os.kill(process.pid, signal.SIGABRT)
        process.wait()
        found = [*folder.glob("core"), *folder.glob("core.%d" % process.pid)]
        return found[0], process.pid


def snapshot_of(target, folder):
    file = folder / "snapshot"
    subprocess.run([support.BINARY, "-t", str(target), "snapshot", "-o", file], check=True,
                   stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return file


def chosen_interpreters():
    """One plain build each of the versions whose tables are tested, and the special builds of 3.13: an old
    one, and those between which the interpreter changed most. The newest if one of them is missing."""
    if support.CHOSEN:
        return support.INTERPRETERS
    each = support.one_per_version()
    plain = [i for i in each if i.version in ((3, 8), (3, 11), (3, 13), (3, 14))] or each[-1:]
    special = [i for i in support.INTERPRETERS
               if i.version == (3, 13) and (i.free_threaded or i.debug_build)]
    return plain + special[:1]


def known_interpreter():
    """One with symbols, if there is one: 3.11, or the newest of the above."""
    chosen = chosen_interpreters()
    return next((i for i in chosen if i.version == (3, 11)), [i for i in chosen if i.plain][-1])
