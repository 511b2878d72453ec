# SPDX-License-Identifier: GPL-3.0-or-later
"""A core of a program whose files were moved since: what is missing, and how to say where it is."""
import json
import os
import resource
import shutil
import signal
from pathlib import Path

import pytest

import environment
import support
from environment import OK, ONE_EACH, PROGRAMS, USAGE


@pytest.fixture
def moved(tmp_path):
    """moved(INTERPRETER): a core, where its program's files were, and where they are now."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern != "core":
        pytest.skip("cores of the kernel go to %r here" % pattern)
    limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def make(interpreter):
        before, folder = tmp_path / "before", tmp_path / "work"
        folder.mkdir()
        copy = environment.Copy(interpreter, before)
        with support.Program([copy.exe, PROGRAMS / "dies.py", "sleep"], env=copy.env, cwd=folder,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, limit)
                             ) as process:
            assert process.line() == "ready"
            os.kill(process.pid, signal.SIGABRT)
            process.wait()
        core, = folder.glob("core*")
        after = tmp_path / "root" / str(before).lstrip("/")
        after.parent.mkdir(parents=True)
        shutil.move(str(before), str(after))
        return core, copy.holder, tmp_path / "root", after

    return make


def stack(found):
    return [frame["func"] for frame in support.python_frames(found["threads"][0])]


@ONE_EACH
def test_files_of_a_core_that_were_moved(interpreter, moved, probing):
    core, holder, root, after = moved(interpreter)
    libraries = "%s:%s" % (after / "bin", after / "lib")
    exe = after / "bin" / os.path.basename(environment.parts(interpreter)[0])
    for options in (["--sysroot", root], ["--library-path", libraries], ["--exe", exe],
                    ["--exe", exe, "--library-path", after / "lib"]):
        found = probing("-t", core, *options, "debug", "--dump", "--json")
        assert found.code == OK, (options, found)
        found = json.loads(found.out)
        assert stack(found) == ["die", "<module>"], (options, found)
        assert not [w for w in found["warnings"] if str(holder) in w], (options, found)

    # Nothing is said: if not all can be read, the file has its name in what is printed.
    plain = probing("-t", core, "debug", "--dump")
    if plain.code != OK or "die " not in plain.out:
        assert "%s is not on this machine" % holder in plain.err, plain
        assert "--sysroot" in plain.err and "--library-path" in plain.err, plain


def test_a_missing_file_is_named(newest, moved, probing):
    core, holder, _, after = moved(newest)
    plain = probing("-t", core, "debug", "--dump", "--native")
    assert "%s is not on this machine" % holder in plain.err, plain
    assert "--library-path says where it is" in plain.err or "--library-path" in plain.err, plain

    # Another build under its name is not taken, and named.
    wrong = after.parent / "wrong"
    wrong.mkdir()
    shutil.copy("/bin/true", str(wrong / holder.name))
    other = probing("-t", core, "--library-path", wrong, "debug", "--dump", "--native")
    assert str(wrong / holder.name) in other.err, other


def test_folders_that_are_none(newest, moved, probing, tmp_path):
    core, _, _, after = moved(newest)
    for options, words in (
            (["--sysroot", tmp_path / "none"], "--sysroot"),
            (["--library-path", tmp_path / "none"], "--library-path"),
            (["--library-path", "%s:%s" % (after, core)], "it is not a folder")):
        result = probing("-t", core, *options, "debug", "--dump")
        assert result.code != OK and words in result.err and not result.out, result
    for option in "--sysroot", "--library-path":
        result = probing("-p", os.getpid(), option, tmp_path, "debug", "--dump")
        assert result.code == USAGE and "%s is for core files" % option in result.err, result
