# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: a target's surroundings, its rights, and the way it was started."""
import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import environment
import faults
import support
from environment import FAILED, OK, UNSUPPORTED, TIMEOUT, needs
from faults import SLEEPERS, Checked, inject_once, run_cell

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="most of this only root can set up")
NOBODY = 65534


def cell(build, name, start, refused=(), words=(), **options):
    """@refused: the exit codes, one of which is expected."""
    if refused:
        options.update(refusals=refused, words=words)
    found = run_cell(name, build, start, **options)
    if refused:
        found.assert_refused()
    else:
        found.assert_loaded()


def idle(build, *flags, kind=("idle",), **options):
    program = build.program("fault_places", *flags)
    return lambda: Checked(program, *kind, **options)


@pytest.mark.parametrize("kind, refused", [
    ("vfork-thread", ()), ("vfork", (TIMEOUT,)), ("leader", ())])
def test_unusual_states(build, kind, refused):
    names = {"vfork": "parent in vfork()", "vfork-thread": "parent in vfork(), with threads",
             "leader": "first thread gone"}

    def start():
        target = Checked(build.program("fault_places"), kind)
        wanted = "Z" if kind == "leader" else "D"
        environment.wait_until(
            lambda: support.thread_status(target.pid)["State"][0] == wanted)
        return target

    cell(build, names[kind], start, refused, ("sleep in the kernel",) if refused else (),
         workers=SLEEPERS)


@pytest.mark.parametrize("name, flags, refused, word", [
    ("statically linked", ["-static"], (UNSUPPORTED,), "statically linked"),
    ("not position independent", ["-no-pie"], (), ""),
    ("without lazy binding", ["-Wl,-z,now,-z,relro"], (), "")], ids=["static", "no-pie", "now"])
def test_links(build, name, flags, refused, word):
    cell(build, name, idle(build, *flags), refused, (word,))


FILTERS = [
    ("reboot", "kill", True), ("clone3", "errno", True), ("memfd_create", "errno", True),
    ("mmap", "kill", False), ("mmap", "trap", False), ("mmap", "errno", False),
    ("mprotect", "kill", False), ("mprotect", "trap", False), ("mprotect", "errno", False),
    ("clone3", "kill", False), ("clone3", "trap", False), ("memfd_create", "kill", False),
    ("memfd_create", "trap", False)]


@pytest.mark.parametrize("call, action, allowed", FILTERS)
def test_filters(build, call, action, allowed):
    cell(build, "seccomp: %s %s" % (action, call), idle(build, kind=("filter", call, action)),
         () if allowed else (UNSUPPORTED,),
         () if allowed else ("its seccomp filter does not allow %s()" % call,))


PR_GET_MDWE = 66


@pytest.mark.parametrize("kind, refused, words", [
    ("kernel", (), ()), ("errno", (), ()),
    ("kill", (UNSUPPORTED,), ("its seccomp filter does not allow mprotect()",)),
    ("full", (FAILED,), ("mprotect() in process", "Cannot allocate memory", "max_map_count")),
    ("40", (FAILED,), ("mmap() in process", "Cannot allocate memory", "/limits")),
    ("200", (FAILED,), ("cannot create a thread", "/limits")),
    ("8300", (FAILED,), ("failed to map segment",)),
    ("descriptors", (FAILED,), ("Too many open files",))])
def test_limits(build, kind, refused, words):
    if kind == "kernel" and ctypes.CDLL(None).prctl(PR_GET_MDWE, 0, 0, 0, 0) < 0:
        pytest.skip("this kernel lets all memory be made executable")
    names = {"kernel": "nothing executable that was writable",
             "errno": "the same by seccomp: errno", "kill": "the same by seccomp: kill",
             "full": "as many mappings as there may be",
             "descriptors": "as many descriptors as there may be"}
    cell(build, "limits: " + names.get(kind, "%s KiB of memory" % kind),
         lambda: Checked(build.program("fault_limits"), kind), refused, words)


@pytest.mark.parametrize("program, kind, refused, words", [
    ("fault_places", "idle", (), ()),
    ("fault_limits", "errno", (FAILED,), ("mprotect() in process", "Operation not permitted", "security module"))])
def test_writes_are_not_forced(build, program, kind, refused, words):
    """The kernel does not let us write to memory that the target may only execute."""
    env = {"LD_PRELOAD": str(build.program("unforced", "-shared", "-fPIC"))}

    cell(build, "no forced writes: " + kind, lambda: Checked(build.program(program), kind),
         refused, words, env=env)


def test_filter_of_containers(build):
    program = build.program("fault_container")
    cell(build, "seccomp: as container runtimes have it", lambda: Checked(program))


class Inside(Checked):
    """The target is a descendant of the started process."""

    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        self.pid = environment.child_of(self.target.pid)


@needs("no user namespaces here", "unshare", "-U", "-r", "true")
@pytest.mark.parametrize("name, words", [
    ("user", ["-U", "-r"]), ("mount", ["-m"]), ("pid", ["-p", "-f", "--mount-proc"]),
    ("user, mount, pid, ipc and uts", ["-U", "-r", "-m", "-p", "-f", "-i", "-u", "--mount-proc"])])
def test_namespaces(build, name, words):
    program = build.program("fault_places")
    cell(build, "namespaces: " + name,
         lambda: Inside(program, "idle", before=["unshare", *words]))


@needs("no mount namespaces here", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp")
def test_hidden_library_and_noexec(build):
    """The target does not see the library, and no code may be mapped from /tmp."""
    program = build.program("fault_places")
    folder = Path("/mnt/probing-%d" % os.getpid())
    folder.mkdir()
    try:
        def each(about, build, target):
            library = shutil.copy(build.library(), folder)
            inject_once(about, build, target, library=Path(library))

        cell(build, "namespaces: library hidden, /tmp noexec", lambda: Checked(
            program, "idle", before=[
                "unshare", "-m", "sh", "-c",
                "mount -t tmpfs none /mnt && mount -t tmpfs -o noexec none /var/tmp && "
                "mount -t tmpfs -o noexec none /dev/shm && exec \"$@\"", "sh"]), each=each)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("proc", [True, False], ids=["with-proc", "without-proc"])
def test_chroot(build, tmp_path, proc):
    root = tmp_path / "root"
    faults.make_root(root, build.program("fault_places"))
    script = 'mkdir -p "$0/proc" "$0/$(dirname "$1")"; touch "$0/$1"; mount --bind "$1" "$0/$1" ' \
        '&& %s exec chroot "$0" /program "$1" idle' % (
            'mount -t proc proc "$0/proc" &&' if proc else "")
    cell(build, "chroot, %s /proc" % ("with" if proc else "without"),
         lambda: Chrooted(script, root))
    assert not list((root / "tmp").glob("probing-[0-9]*-*"))


class Chrooted(Checked):
    def __init__(self, script, root):
        self.shared = support.Shared()
        self.target = support.Program(["unshare", "-m", "sh", "-c", script, root, self.shared.path])
        assert self.target.line() == "ready"
        self.pid = self.target.pid


def test_deleted_libraries(build, tmp_path):
    """Replaced on disk, as an upgrade does."""
    program = build.program("fault_places")
    listing = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    libraries = [word for word in listing.split() if word.startswith("/")]

    def start():
        for path in libraries:
            shutil.copy(path, tmp_path)
        target = Checked(program, "idle", before=[
            tmp_path / "ld-linux-x86-64.so.2", "--library-path", tmp_path])
        for path in tmp_path.glob("*.so*"):
            path.unlink()
        return target

    cell(build, "deleted C library", start)


class Nobodys(Checked):
    """A target of another user."""

    def __init__(self, build):
        os.chmod(build.folder, 0o755)
        program = build.program("fault_places")
        self.shared = support.Shared()
        os.chmod(self.shared.path, 0o666)
        self.target = support.Program(
            [program, self.shared.path, "idle"], preexec_fn=lambda: (
                os.setgroups([]), os.setgid(NOBODY), os.setuid(NOBODY)))
        assert self.target.line() == "ready"
        self.pid = self.target.pid


def test_other_user(build):
    cell(build, "target of another user, by root", lambda: Nobodys(build))


def test_own_target_of_a_user(build):
    """Nobody needs to be root for a process of his own."""
    def each(about, build, target):
        target.wait_for_progress()
        before = faults.look_settled(target.pid)
        done = subprocess.run(
            [support.BINARY, "-t", str(target.pid), "inject", "-L", build.library()],
            user=NOBODY, group=NOBODY, extra_groups=[], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        about.run("loaded" if done.returncode == OK else "refused", done.stderr.decode())
        faults.wait_until_same(before)
        target.wait_for_progress()

    if not environment.runs("setpriv", "--reuid=%d" % NOBODY, "--clear-groups", support.BINARY,
                            "--version"):
        pytest.skip("another user cannot run the command where it is")
    run_cell("target of one's own, not root", build, lambda: Nobodys(build), each=each
             ).assert_loaded()
