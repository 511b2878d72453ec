# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that shares its memory with another one is refused: a library would be loaded into both, and a
lock held by its thread when one of them ended would stay locked in the other."""
import os
import signal
import subprocess

import pytest

import environment
import support
from environment import OK, TIMEOUT, UNSUPPORTED
from faults import Checked, Look, inject, is_mapped

TOOL = os.path.join(os.path.dirname(support.BINARY), "probing-inject")


def assert_refused(build, pid, other):
    before, library = Look(pid), build.library()
    code, _, err = inject(pid, library)
    assert code == UNSUPPORTED, err
    assert "process %d shares its memory with process %d" % (pid, other) in err
    done = subprocess.run([TOOL, "-p", str(pid), library], stderr=subprocess.PIPE, check=False)
    assert done.returncode and b"shares its memory" in done.stderr, done
    assert not is_mapped(pid, library) and not Look(pid).differences(before)


def test_child_in_vfork(build):
    with Checked(build.program("fault_places"), "vfork") as target:
        environment.wait_until(lambda: support.children(target.pid))
        child, = support.children(target.pid)
        assert_refused(build, child, target.pid)
        # The parent is only refused because it is stopped in vfork().
        assert inject(target.pid, build.library())[0] == TIMEOUT
        target.wait_for_progress()


def test_parent_in_vfork(build):
    """Its other threads are as free as ever: the child ends nothing in it."""
    with Checked(build.program("fault_places"), "vfork-thread") as target:
        environment.wait_until(lambda: support.children(target.pid))
        assert_refused(build, support.children(target.pid)[0], target.pid)
        assert inject(target.pid, build.library())[0] == OK
        target.wait_for_progress()


@pytest.mark.parametrize("kind", ["child", "sibling"])
def test_two_processes_with_one_memory(build, kind):
    """Of any kinship: all processes are compared."""
    with Sharing(build, *["siblings"] * (kind == "sibling")) as target:
        assert_refused(build, target.pid, target.other)
        assert_refused(build, target.other, target.pid)
        target.wait_for_progress()


class Sharing(Checked):
    def __init__(self, build, *words):
        self.sibling = bool(words)
        self.shared = support.Shared()
        self.target = support.Program([build.program("fault_places"), self.shared.path, "shares", *words])
        self.other, self.pid = int(self.target.line()), self.target.pid
        assert self.target.line() == "ready"

    def finish(self):
        super().finish()
        if self.sibling:
            assert os.waitpid(self.other, 0)[1] == 0


def test_without_kcmp(build):
    """Where we may not compare processes, the parent's vfork() shows the sharing."""
    forbid = environment.build("env_filter.c", "env_filter")
    if subprocess.run([forbid, "kcmp", "/bin/true"], check=False).returncode:
        pytest.skip("no seccomp filters here")
    with Checked(build.program("fault_places"), "vfork") as target:
        environment.wait_until(lambda: support.children(target.pid))
        child, = support.children(target.pid)
        done = subprocess.run([forbid, "kcmp", support.BINARY, str(child), "inject", "-L", build.library()],
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode == UNSUPPORTED and b"shares its memory" in done.stderr, done
        target.wait_for_progress()


@pytest.mark.parametrize(
    "interpreter", [i for i in support.one_per_version() if i.has_ctypes], ids=repr)
def test_python_child_in_vfork(interpreter):
    """Code is not evaluated in the child; the parent's Python continues when the child ends."""
    library = environment.build("env_vfork.c", "env_vfork.so", "-shared", "-fPIC")
    if not environment.runs(interpreter.exe, "-c", "import ctypes; ctypes.CDLL(%r)" % str(library),
                            env=interpreter.env):
        pytest.skip("its C library is too old for ours")
    with support.Target(interpreter, environment.PROGRAMS / "env_vfork.py", library) as process:
        assert process.line() == "ready"
        environment.wait_until(lambda: support.children(process.pid))
        child, = support.children(process.pid)
        try:
            for words in (["eval", "1"], ["inject"], ["debug", "--pause", "--max", "1s"]):
                done = subprocess.run([support.BINARY, "-p", str(child), *words],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, check=False)
                assert done.returncode == UNSUPPORTED and b"shares its memory" in done.stderr, done
        finally:
            os.kill(child, signal.SIGKILL)
        done = subprocess.run([support.BINARY, str(process.pid), "eval", "print(40 + 2)"],
                              stdout=subprocess.PIPE, check=True)
        assert done.stdout == b"42\n"
        assert process.wait()[0] == 0
