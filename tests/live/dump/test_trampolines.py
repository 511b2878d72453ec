# SPDX-License-Identifier: GPL-3.0-or-later
"""`--native` of programs that run with -X perf: the trampolines have no call frame information."""
import os

import pytest

import support
from environment import PROGRAMS

EACH = pytest.mark.parametrize(
    "interpreter", [i for i in support.one_per_version((3, 12)) if not i.free_threaded], ids=repr)


@EACH
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only x86_64 has trampolines that are known")
def test_stacks_go_on_behind_trampolines(interpreter):
    """Down to the start of the program, with the C functions that called each Python function."""
    with support.Target(interpreter, PROGRAMS / "trampolines.py", options=["-X", "perf"]) as target:
        assert target.line() == "ready"
        support.wait_for_sleep(target.pid, "nanosleep", target.pid)
        for options in [(), ("--freeze",)] * support.count(5, 100):
            main, other = support.dump(target.pid, "--native=all", *options)["threads"]
            assert main["error"] is None, main
            functions = [frame["func"] for frame in main["frames"]]
            order = [functions.index(name) for name in ("leaf", "middle", "<module>", "_start")]
            assert order == sorted(order) and functions[-1] == "_start", functions
            assert order[1] > order[0] + 1, functions  # reduce(), by name if there is debug information
            assert all(frame["kind"] == "python" or frame["module"] for frame in main["frames"]), main
            names = [frame["func"] for frame in other["frames"] if frame["kind"] == "python"]
            assert names[-4:] == ["busy", "run", "_bootstrap_inner", "_bootstrap"], other
