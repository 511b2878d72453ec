# SPDX-License-Identifier: GPL-3.0-or-later
"""Native frames around Python frames whose stack was switched, as greenlets do."""
import os
import subprocess

import pytest

import environment
import support
from environment import PROGRAMS


def headers(interpreter):
    code = "import sysconfig; print(sysconfig.get_paths()['include'])"
    return subprocess.run([interpreter.exe, "-c", code], env=interpreter.env, check=True,
                          stdout=subprocess.PIPE).stdout.decode().strip()


@pytest.mark.parametrize("interpreter", [
    i for i in support.INTERPRETERS if (3, 7) <= i.version <= (3, 11) and not i.debug_build],
    ids=repr)
@pytest.mark.parametrize("does", ["rests", "computes"])
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=["default", "freeze"])
def test_frames_of_a_switched_stack(interpreter, does, options):
    """The innermost loops run them, and the function that switched is outside of them."""
    include = headers(interpreter)
    if not os.path.exists(os.path.join(include, "Python.h")) or not interpreter.has_ctypes:
        pytest.skip("no headers of this Python, or no ctypes")
    library = environment.build("native_switched.c", "switched-%s.so" % interpreter, "-shared",
                                "-fPIC", "-I" + include)
    with support.Target(interpreter, PROGRAMS / "switched.py", library, does) as target:
        target.line()
        if does == "rests":
            environment.settle(target.pid, 1)
        for _ in range(support.count(5, 100)):
            thread, = support.dump(target.pid, "--native=all", *options)["threads"]
            names = [frame["func"] for frame in thread["frames"]]
            python = [frame["func"] for frame in support.python_frames(thread)]
            assert python == ["inner", "body"] and thread["error"] is None, thread
            assert names.index("inner") < names.index("body") < names.index("call_aside"), names
            outside = names[names.index("call_aside"):]
            assert any(name and "_PyEval_EvalFrameDefault" in name for name in outside), names
