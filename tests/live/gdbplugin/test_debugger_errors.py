# SPDX-License-Identifier: GPL-3.0-or-later
"""Error messages of commands in gdb and LLDB, in lines where columns matter."""
import pytest

from debuggers import attached, both, tried
from debuggers import known, sleeper  # noqa: F401 (fixtures)


@both
@pytest.mark.parametrize("sql, says", ids=["column", "syntax"], argvalues=[
    ("SELECT nonsense FROM python.threads",
     "no such column: nonsense\n    SELECT nonsense FROM python.threads\n           ^\n"),
    ("SELEC 1", "near \"SELEC\": syntax error\n    SELEC 1\n    ^")])
def test_errors_of_sql_point_at_the_place(start, sleeper, sql, says):
    session = attached(start, sleeper, ("error",), tried(start, "probing query " + sql))
    assert "probing: " + says in session.part("error") + "\n", session


@both
def test_sampling_needs_the_process_to_run(start, sleeper):
    """The message says why it cannot be sampled here, and what to type instead."""
    session = attached(start, sleeper, ("told",), tried(start, "probing flamegraph --cc"))
    told = session.part("told")
    assert "holds process %d, and only one program can stop its threads" % sleeper.pid in told, session
    assert "'detach'" in told and "'probing %d perf'" % sleeper.pid in told, session
