# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that are stopped while they enter or leave the eval loop."""
import pytest

import support
from environment import PROGRAMS

CHAINS = [["<module>", "work", *inner] for inner in ([], ["key"], ["key", "leaf"], ["add"],
                                                     ["add", "leaf"])]


@pytest.mark.every_interpreter
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 11), (3, 12)), ids=repr)
@pytest.mark.parametrize("options", [[], ["--freeze"], ["--native"]],
                         ids=["default", "freeze", "native"])
def test_no_stack_is_lost(interpreter, options):
    """A stack that makes no sense at one moment is read at another one."""
    with support.Target(interpreter, PROGRAMS / "enters.py") as target:
        target.line()
        for _ in range(support.count(150, 100000 if "--freeze" in options else 3000)):
            thread, = support.dump(target.pid, *options)["threads"]
            functions = [frame["func"] for frame in support.python_frames(thread)]
            assert thread["error"] is None and functions[::-1] in CHAINS, thread
