# SPDX-License-Identifier: GPL-3.0-or-later
"""Each row of the comparison in docs/debuggers.md has the tests that show it."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "debuggers.md").read_text(encoding="utf-8")
MOST_LINES = 60
TESTS = {
    "attach": {1: "breaks_and_steps"},
    "core file": {1: "post_mortem", 2: "post_mortem", 3: "a_core", 10: "a_core"},
    "without debug information": {3: "an_attached_process"},
    "nothing loaded into the process to read it": {3: "an_attached_process"},
    "stacks of all threads": {3: "backtrace_is_that_of_the_command"},
    "C frames between those of Python": {3: "an_attached_process"},
    "variables, up, down, source": {1: "looks", 3: "moving_between_frames"},
    "values unfolded": {2: "a_session"},
    "objects in `print`, `info locals`": {4: "own_commands_of_gdb", 9: "cases"},
    "SQL, locks, what a thread waits for": {3: "the_page_shows_what_is_printed"},
    "breakpoints at lines, with conditions": {5: "each_call_stops_and_a_condition_chooses"},
    "… at functions, methods, lambdas, generators": {1: "kinds_of_breakpoints"},
    "… once, ignored N times, disabled": {1: "kinds_of_breakpoints", 5: "limits"},
    "… in one thread": {5: "limits"},
    "… by hit count, logging": {2: "logpoints", 8: "flows"},
    "… with commands": {1: "commands_and_python", 7: "gdb_own_commands"},
    "… at raised exceptions": {1: "exceptions", 2: "exceptions", 5: "exceptions"},
    "… in code that is not loaded yet": {2: "what_is_loaded_later", 5: "code_that_is_loaded_later"},
    "… before Python has started": {7: "before_run_and_again lldb_before_run_and_again"},
    "step, next, return, until": {6: "each_line over_and_out"},
    "all threads stop": {1: "another_client"},
    "code in a frame": {1: "commands_and_python"},
    "raise an exception on request": {1: "an_exception_on_request", 7: "an_exception_on_request"},
    "jump, return a value": {1: "an_exception_on_request"},
    "completion and history": {1: "continue_is_interrupted"},
    "an editor": {2: "a_session", 8: "flows"},
    "another machine": {1: "served", 2: "served"},
    "leaves nothing behind": {1: "killed", 2: "the_editor_ends"},
}
NOT_OURS = {"follows child processes"}  # the cell says so


def table():
    """{what: (cells, numbers of its files)} and {number: file}."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    begin = lines.index("||pdb|debugpy|libpython.py|cpython-lldb|probing|test|") + 2
    rows = {}
    for line in lines[begin:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")] if not line.startswith("||") else []
        if len(cells) < 6:
            break
        rows[line.split("|")[1].strip()] = line.split("|")[2:7], {int(n) for n in re.findall(r"\[(\d+)\]", line)}
    files = {int(number): ROOT / "docs" / path for number, path in re.findall(r"^\[(\d+)\]: (\S+)$", PAGE, re.M)}
    return rows, files


ROWS, FILES = table()


def test_each_row_is_known():
    assert set(ROWS) == set(TESTS) | NOT_OURS
    assert len(ROWS) + len(FILES) <= MOST_LINES
    assert all(ROWS[what][0][-1] == "no" and not ROWS[what][1] for what in NOT_OURS)


@pytest.mark.parametrize("what", TESTS)
def test_a_row_has_its_tests(what):
    assert ROWS[what][1] == set(TESTS[what])
    for number, names in TESTS[what].items():
        text = FILES[number].read_text(encoding="utf-8")
        for name in names.split():
            assert re.search(r"^def test_%s\(" % name, text, re.M), (name, FILES[number])
