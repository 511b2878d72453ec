# SPDX-License-Identifier: GPL-3.0-or-later
"""A gdb that cannot restore the registers of this processor: nothing is run in the process, which runs on
undisturbed; commands that only read work."""
import os
import subprocess

import pytest

import debuggers
import own_gdb
import support
from debuggers import known, sleeper, tried  # noqa: F401 (fixtures)

OWN = {name: "/usr/bin/" + name for name in ("gdb", "gdbserver")}
WRITES = ("eval 6 * 7", "inject", "break-py sleeper.py:13")


def needs_an_old(name):
    return pytest.mark.skipif(
        not os.path.exists(OWN[name]) or own_gdb.writes_registers(OWN[name]),
        reason="it takes a processor with AMX, and %s before %d in /usr/bin" % (
            name, own_gdb.FIRST_WITH_AMX))


def assert_refused(session, process, who):
    for command in WRITES:
        said = session.part(command.split()[0].replace("-", "_"))
        assert who in said and debuggers.REFUSED in said, session
        assert "'probing -t %d eval' in a shell" % process.pid in said, session
    assert "sleeper.py:13" in session.part("stack") and "Traceback" not in session.err, session
    with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
        assert "probing" not in maps.read()


def commands():
    for command in WRITES:
        yield from ((command.split()[0].replace("-", "_"),),
                    tried(debuggers.gdb, "probing " + command))
    yield from (("stack",), "probing backtrace")


def assert_goes_on(process):
    done = subprocess.run([support.BINARY, "-p", str(process.pid), "eval", "6 * 7"],
                          stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"42\n" and process.alive()


@needs_an_old("gdb")
def test_gdb(sleeper):  # noqa: F811
    session = debuggers.gdb(*commands(), arguments=["-p", sleeper.pid], program=OWN["gdb"],
                            may_refuse=True)
    assert_refused(session, sleeper, "gdb ")
    assert_goes_on(sleeper)


@needs_an_old("gdbserver")
@debuggers.needs_gdb
def test_gdbserver(sleeper):  # noqa: F811
    """Also behind a gdb that could."""
    with debuggers.gdbserver(sleeper.pid, OWN["gdbserver"]) as address:
        session = debuggers.gdb("target remote " + address, *commands(), may_refuse=True,
                                arguments=[os.readlink("/proc/%d/exe" % sleeper.pid)])
    assert_refused(session, sleeper, "this gdbserver")
    assert_goes_on(sleeper)
