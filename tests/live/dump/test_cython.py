# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions of Cython have the names, files and lines of the .pyx."""

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

import packages
import support
import tables

MODULE = """
cdef class Worker:
    cdef int n
    def __init__(self, n):
        self.n = n
    cpdef step(self, call):
        x = self.n + 1
        return call(x)  # step
    def again(self, call):
        kept = self.step(call)  # again
        return kept

cdef object inner(object call):
    y = 1
    kept = Worker(y).again(call)  # inner
    return kept

def outer(call):
    z = 3
    kept = inner(call)  # outer
    return kept
"""
SCRIPT = """
import sys, time
import cymod
def leaf(x):
    print("ready", flush=True)
    sys.stdin.read()
cymod.outer(leaf)
"""
CALLS = [("cymod.Worker.step", "step"), ("cymod.Worker.again", "again"), ("cymod.inner", "inner"),
         ("cymod.outer", "outer")]


def build(folder, *options):
    python = packages.need("Cython")
    headers = Path(subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"],
        stdout=subprocess.PIPE, check=True).stdout.decode().strip())
    if not (headers / "Python.h").exists():
        pytest.skip("no headers of the test packages' interpreter here")
    (folder / "cymod.pyx").write_text(MODULE)
    (folder / "run.py").write_text(SCRIPT)
    subprocess.run([packages.BIN / "cython", "-3", *options, "cymod.pyx"], cwd=folder, check=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-g", "-I", headers, "cymod.c", "-o",
                    "cymod" + sysconfig.get_config_var("SHLIB_SUFFIX")], cwd=folder, check=True)
    return support.Program([python, folder / "run.py"])


def line_of(mark):
    return next(i for i, line in enumerate(MODULE.split("\n"), 1) if line.endswith("# " + mark))


def of_cython(frames):
    """[(name, file, line)], each function once: the wrapper that Python calls is not counted."""
    return [(frame["func"], frame["file"], frame["line"]) for frame in frames
            if (frame.get("full_func") or "").startswith(("__pyx_f", "__pyx_pf"))]


@pytest.mark.parametrize("options", [[], ["--line-directives"]], ids=["comments", "directives"])
def test_names_and_lines(probing, tmp_path, options):
    with build(tmp_path, *options) as program:
        program.line()
        frames = support.dump(program.pid, "--native")["threads"][0]["frames"]
        expected = [(name, str(tmp_path / "cymod.pyx"), line_of(mark)) for name, mark in CALLS]
        assert [frame for frame in of_cython(frames) if frame in expected] == expected, frames
        assert not [frame for frame in frames if (frame["func"] or "").startswith(("__pyx", "__Pyx"))]
        rows = tables.query(program.pid, "SELECT func, file, lineno FROM native.backtrace "
                                         "WHERE full_func LIKE '\\_\\_pyx\\_f%' ESCAPE '\\'")
        assert ("cymod.inner", str(tmp_path / "cymod.pyx"), line_of("inner")) in [
            tuple(row.values()) for row in rows]
        saved = tmp_path / "cython.snap"
        assert probing(program.pid, "snapshot", "-o", saved).code == 0
        (tmp_path / "cymod.c").unlink()
        found = json.loads(probing(saved, "dump", "--json", "--native").out)
        assert of_cython(found["threads"][0]["frames"]) == of_cython(frames)


def test_without_the_c_file(probing, tmp_path):
    with build(tmp_path) as program:
        program.line()
        (tmp_path / "cymod.c").unlink()
        result = probing(program.pid, "bt", "--native")
        assert "the .pyx is not in the debug information, and" in result.err, result
        assert "    cymod.inner " in result.out and "cymod.c:" in result.out, result
