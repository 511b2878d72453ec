# SPDX-License-Identifier: GPL-3.0-or-later
"""Every available glibc: those of Debian's suites, installed with their interpreters. Programs in C are
linked with the very files of an old or new C library and run by its loader; Python gets the agent."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import environment
import faults
import support
from environment import FAILED, OK, UNSUPPORTED
from faults import Checked, Look, inject, wait_until_same

TRIPLET = "%s-linux-gnu" % os.uname().machine
AGENT = os.path.join(os.path.dirname(support.BINARY), "libprobing-agent.so")


class Libc:
    """A glibc: its version, the folder of its files, and an interpreter that runs on it."""

    def __init__(self, interpreter):
        self.interpreter = interpreter
        root = Path(interpreter.chroot or "/")
        self.folder = root / "usr/lib" / TRIPLET
        if not (self.folder / "libc.so.6").exists():
            self.folder = root / "lib" / TRIPLET
        content = (self.folder / "libc.so.6").read_bytes()
        found = re.search(rb"GNU C Library .*? release version (\d+)\.(\d+)", content)
        self.version = int(found[1]), int(found[2])
        self.loader = next(self.folder.glob("ld-linux-*.so.*"))

    def __repr__(self):
        return "glibc-%d.%d" % self.version

    @property
    def apart(self):
        """Are libpthread and libdl libraries of their own?"""
        return self.version < (2, 34)

    def link(self, build, name, *libraries):
        """A program that needs just these of its libraries."""
        files = [self.folder / library for library in libraries if self.apart]
        return build.program(
            name, "-nodefaultlibs", "-Wl,--no-as-needed", *files, self.folder / "libc.so.6",
            "-lgcc", "-Wl,--dynamic-linker=%s" % self.loader, "-Wl,-rpath=%s" % self.folder)


def all_libcs():
    found = {}
    for interpreter in support.INTERPRETERS:
        if interpreter.name.startswith("system") or interpreter.chroot:
            libc = Libc(interpreter)
            found.setdefault(libc.version, libc)
    return [found[version] for version in sorted(found)]


LIBCS = all_libcs()
OLD = [libc for libc in LIBCS if libc.apart]
every = pytest.mark.parametrize("libc", LIBCS, ids=repr)
old = pytest.mark.parametrize("libc", OLD, ids=repr)


class Build(faults.Build):
    """Sources come before the libraries they are linked with."""

    def program(self, name, *flags):
        key = (name,) + flags
        if key not in self._made:
            self._made[key] = self.folder / ("%s-%d" % (name, len(self._made)))
            subprocess.run(
                ["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-o", self._made[key],
                 faults.PROGRAMS / (name + ".c"), *flags], check=True)
        return self._made[key]


@pytest.fixture(scope="module")
def build():
    made = Build()
    yield made
    made.remove()


def test_both_kinds_are_there():
    """Before 2.34 threads and loading were libraries of their own; the tests are about both."""
    if len(LIBCS) == 1:
        pytest.skip("only this machine's: make test-interpreters gets more")
    assert OLD and len(OLD) < len(LIBCS), LIBCS
    support.report("glibc: " + ", ".join(repr(libc) for libc in LIBCS))


def runs_on(pid, libc):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        return str((libc.folder / "libc.so.6").resolve()) in file.read()


@every
@pytest.mark.parametrize("libraries", [
    ["libpthread.so.0", "libdl.so.2"], ["libpthread.so.0"]], ids=["libdl", "no-libdl"])
def test_c_program(build, libc, libraries):
    """An old program that is not linked with libdl has a dlopen() inside of its C library."""
    with Checked(libc.link(build, "fault_places", *libraries), "idle") as target:
        assert runs_on(target.pid, libc)
        library, before = build.library(), Look(target.pid)
        code, out, err = inject(target.pid, library, "--symbol", "fault_touch", "--arg", "four")
        assert code == OK, err
        assert out["value"] == 1004
        wait_until_same(before)
        target.wait_for_progress()
        code, out, err = inject(target.pid, library)
        assert code == OK and out["already"], err
        code, out, err = inject(target.pid, library, "--symbol", "fault_touch", "--arg", "six666")
        if libc.apart and len(libraries) == 1:
            assert code == UNSUPPORTED and "open it once more" in err, (code, err)
        else:
            assert code == OK and out["already"] and out["value"] == 1006, err
        target.wait_for_progress()


@every
def test_loader_refuses(build, libc, tmp_path):
    """The loader's own words, where it has dlerror() to say them."""
    source, library = tmp_path / "needs.c", tmp_path / "needs.so"
    source.write_text("int nowhere_to_be_found(void);\n"
                      "int f(void) { return nowhere_to_be_found(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    for libraries in (["libpthread.so.0", "libdl.so.2"], ["libpthread.so.0"]):
        with Checked(libc.link(build, "fault_places", *libraries), "idle") as target:
            before = Look(target.pid)
            code, _, err = inject(target.pid, library)
            word = ("undefined symbol: nowhere_to_be_found"
                    if len(libraries) == 2 or not libc.apart else "loader of the C library refuses")
            assert code == FAILED and word in err, err
            wait_until_same(before)
            target.wait_for_progress()


@every
def test_program_without_threads(build, libc):
    """Since 2.34 every program has threads; an older one has to be linked with them."""
    program = libc.link(build, "plain")
    with support.Program([program]) as target:
        assert target.line() == "ready" and runs_on(target.pid, libc)
        before, library = Look(target.pid), build.library()
        code, out, err = inject(target.pid, library, "--symbol", "fault_touch")
        if libc.apart:
            assert code == UNSUPPORTED and "has no pthread_create()" in err
            assert "LD_PRELOAD=libpthread.so.0" in err
            assert not faults.is_mapped(target.pid, library)
        else:
            assert (code, out["value"]) == (OK, 1000), err
        wait_until_same(before)
        assert target.alive()


@old
def test_preloaded_threads(build, libc):
    """The hint's advice works."""
    with support.Program([libc.link(build, "plain")],
                         env=dict(os.environ, LD_PRELOAD="libpthread.so.0")) as target:
        assert target.line() == "ready"
        code, out, err = inject(target.pid, build.library(), "--symbol", "fault_touch")
        assert (code, out["value"]) == (OK, 1000), err


@every
@pytest.mark.parametrize("libraries", [
    ["libpthread.so.0", "libdl.so.2"], ["libpthread.so.0"]], ids=["libdl", "no-libdl"])
def test_agent_in_c_program(build, libc, libraries):
    """It loads wherever there is a C library, and reports a library that lacks its needs."""
    with Checked(libc.link(build, "fault_places", *libraries), "idle") as target:
        before = Look(target.pid)
        code, out, err = inject(target.pid, AGENT, "--symbol", "probing_agent_start")
        assert code == OK, err
        if libc.apart and len(libraries) == 1:
            assert out["value"] < 0
        else:
            assert out["value"] == 0
            environment.wait_until(lambda: len(support.thread_ids(target.pid)) == 2)
            stopped = subprocess.run([support.BINARY, str(target.pid), "agent", "stop"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            assert stopped.returncode == OK, stopped
        wait_until_same(before)
        target.wait_for_progress()


@every
def test_agent_in_python(libc, probing):
    """Code runs in it, and the interpreter says the same of its C library as we do."""
    with support.Target(libc.interpreter, faults.PROGRAMS / "sleeper.py") as target:
        assert target.line() == "ready" and runs_on(target.pid, libc)
        done = probing(target.pid, "eval",
                       "import os; os.confstr('CS_GNU_LIBC_VERSION')")
        assert done.code == OK, done
        assert done.out == "'glibc %d.%d'\n" % libc.version
        status = json.loads(probing(target.pid, "agent", "status", "--json").out)
        assert status["pid"] == target.pid
        assert probing(target.pid, "eject").code == OK
        assert target.alive()
