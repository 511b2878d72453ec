# SPDX-License-Identifier: GPL-3.0-or-later
"""Loading a library: the visible result, refusals with their messages, and unusual places."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import agent
import environment
import faults
import support
from environment import NO_PROCESS, OK, PERMISSION, UNSUPPORTED, needs
from faults import Checked, Look, inject, is_mapped, make_root, wait_until_same

FAILED, USAGE, TIMEOUT = 1, 2, 5
REFUSAL_SECONDS = 2 + 10  # as promised, and slack for a busy machine


@pytest.fixture
def idle(build):
    with Checked(build.program("fault_places"), "idle") as target:
        yield target


def assert_loads(target, library, way=None):
    """It is loaded and its function called; nothing else has changed."""
    before = Look(target.pid)
    code, out, err = inject(target.pid, library, "--symbol", "fault_touch", "--arg", "seven77")
    assert code == OK, err
    assert out["value"] == 1007 and not out["already"]
    assert way in (None, out["way"])
    wait_until_same(before)
    target.wait_for_progress()
    return out


def assert_refused(target, library, wanted_code, *words):
    """It says why, soon, and the target has not noticed."""
    before, start = Look(target.pid), time.monotonic()
    code, _, err = inject(target.pid, library)
    assert code == wanted_code, (code, err)
    assert time.monotonic() - start < REFUSAL_SECONDS
    for word in words:
        assert word in err, err
    assert len(err.strip().split("\n")) >= 2, "no hint: " + err
    assert not is_mapped(target.pid, library)
    assert not Look(target.pid).differences(before)


def state(pid):
    return support.thread_status(pid)["State"][0]


def test_text(build, idle, probing):
    library = build.library()
    done = probing("-t", idle.pid, "inject", "--library", library, "--symbol", "fault_touch",
                   "--arg", "abc")
    assert done.code == OK
    first, second = done.out.split("\n")[:2]
    assert first.startswith("%s: loaded into process %d by its path; thread %d paused for " % (
        library, idle.pid, idle.pid))
    assert second == "fault_touch() returned 1003"
    for alias in ("in", "i"):
        again = probing("-t", idle.pid, alias, "-L", library)
        assert (again.code, again.out) == (
            OK, "%s: already loaded in process %d\n" % (library, idle.pid))


def test_long_arguments(build, idle):
    """Arguments too long for the borrowed memory are refused before anything is loaded."""
    library, before = build.library(), Look(idle.pid)
    code, _, err = inject(idle.pid, library, "--symbol", "fault_touch", "--arg", "x" * 20000)
    assert code == USAGE and "is too long" in err and not is_mapped(idle.pid, library), err
    wait_until_same(before)
    code, out, err = inject(idle.pid, library, "--symbol", "fault_touch", "--arg", "x" * 8000)
    assert code == OK and out["value"] == 9000, (code, out, err)


def test_loaded_once(build, idle):
    library = build.library()
    assert_loads(idle, library)
    with open("/proc/%d/maps" % idle.pid, encoding="utf-8") as file:
        before = file.read().count(library.name)
    code, out, _ = inject(idle.pid, library)
    assert code == OK and out["already"]
    with open("/proc/%d/maps" % idle.pid, encoding="utf-8") as file:
        assert file.read().count(library.name) == before


def test_symbol_of_a_loaded_library(build, idle, probing):
    """It is called, and the library is open no more often than before."""
    library = build.library()
    assert_loads(idle, library)
    for argument in ("four", "eleven11111"):
        before = faults.look_settled(idle.pid)
        code, out, err = inject(idle.pid, library, "--symbol", "fault_touch", "--arg", argument)
        assert code == OK, err
        assert out["already"] and out["value"] == 1000 + len(argument) and out["tid"] == idle.pid, out
        wait_until_same(before)
        idle.wait_for_progress()
    done = probing(idle.pid, "inject", "-L", library, "-s", "fault_touch", "--arg", "four")
    first, second = done.out.split("\n")[:2]
    assert first.startswith("%s: already loaded in process %d; thread %d paused for " % (
        library, idle.pid, idle.pid)) and second == "fault_touch() returned 1004"
    code, _, err = inject(idle.pid, library, "--symbol", "fault_missing")
    assert code == USAGE and "exports no function" in err


@pytest.mark.parametrize("kept", [False, True], ids=["gone", "renamed"])
@pytest.mark.parametrize("build_id", ["none", "sha1"])
def test_replaced_library(build, idle, build_id, kept):
    """A new file where a loaded library was: the old one, loaded under that name, would be called."""
    old, new = (build.folder / ("%s-%s-%s.so" % (name, build_id, kept)) for name in ("old", "new"))
    for path, flags in ((old, ()), (new, ("-DTHREAD",))):
        shutil.copy(build.program("fault_library", "-shared", "-fPIC", "-Wl,--build-id=" + build_id,
                                  *flags), path)
    assert inject(idle.pid, old, "--symbol", "fault_touch", "--arg", "x")[0] == OK
    before = faults.look_settled(idle.pid)
    if kept:
        old.rename(str(old) + ".kept")
    new.replace(old)
    for options in (("--symbol", "fault_touch", "--arg", "x"), ()):
        code, out, err = inject(idle.pid, old, *options)
        assert code == UNSUPPORTED and not out, (out, err)
        assert "another file" in err and "copy it to another name" in err, err
    wait_until_same(before)
    copy = Path(shutil.copy(old, str(old) + ".copy"))
    code, out, err = inject(idle.pid, copy, "--symbol", "fault_touch", "--arg", "x")
    assert code == OK and not out["already"] and is_mapped(idle.pid, copy), err
    idle.wait_for_progress()


def test_two_libraries_from_memory(build, tmp_path):
    """Where the target does not see the files, each request loads its own library."""
    if os.geteuid() != 0:
        pytest.skip("only root makes a mount namespace")
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && shift 0 && exec "$@"',
              tmp_path]
    with Checked(build.program("fault_places"), "idle", before=hidden) as target:
        for number, flags in enumerate(((), ("-DTHREAD",))):
            library = tmp_path / ("library%d.so" % number)
            shutil.copy(build.library(*flags), library)
            for _ in range(2):
                code, out, err = inject(target.pid, library, "--symbol", "fault_touch")
                assert code == OK and out["value"] == 1000, err
            assert library.name in Path("/proc/%d/maps" % target.pid).read_text("utf-8")


def test_wrong_words(build, idle, probing, tmp_path):
    text = tmp_path / "text.so"
    text.write_text("no library")
    library = build.library()
    for options, word in [
            (["-s", "start"], "'--symbol' without '--library'"),
            (["-L", tmp_path / "none.so"], "cannot open"),
            (["-L", text], "is not a shared library"),
            (["-L", library, "-s", "nothing"], "exports no function 'nothing'"),
            (["-L", library, "--arg", "x"], "'--arg' without '--symbol'")]:
        done = probing("-t", idle.pid, "inject", *options)
        assert done.code == USAGE and word in done.err, done
    assert not is_mapped(idle.pid, library)


@pytest.mark.parametrize("options, word, code", [
    (["-P"], "not a Python process", UNSUPPORTED), (["--pprof"], "not a Python process", UNSUPPORTED),
    (["-l", "127.0.0.1:0", "-P"], "'--pprof' with '--listen'", USAGE)])
def test_recordings_that_cannot_be_made(idle, probing, options, word, code):
    """Refused before anything is done: the user must not believe that a recorder runs."""
    done = probing("-t", idle.pid, "inject", *options)
    assert done.code == code and word in done.err and not done.out, done
    assert "probing-" not in "".join(agent.tasks(idle.pid).values())


@pytest.mark.parametrize("options, text", [
    (["-D", "probing.rate=1"], "there is no setting 'probing.rate'"), (["--define", "a"], "KEY=VALUE"),
    (["-D", "crash.count=3"], "'--define' without '--crash'"), (["--hold", "1s"], "'--hold' without"),
    (["-c", "-L", "/lib/libc.so.6"], "'--crash' with '--library'")])
def test_wrong_settings_are_refused_before_anything_is_done(idle, probing, options, text):
    done = probing("-t", idle.pid, "inject", *options)
    assert done.code == USAGE and text in done.err and not done.out, done
    assert "probing-" not in "".join(agent.tasks(idle.pid).values())


def test_execute(target, probing):
    """As with eval: its output, its value, its exit code; the agent stays."""
    process = target("evaluated.py", "idle")
    done = probing(process.pid, "inject", "-e", "print('a')\n6 * 7")
    assert (done.code, done.out, done.err) == (0, "a\n42\n", ""), done
    done = probing(process.pid, "inject", "--execute", "1/0")
    assert done.code == 1 and done.err.endswith("ZeroDivisionError: division by zero\n"), done
    done = probing(process.pid, "inject", "--execute=numbers", "--json")
    assert json.loads(done.out)["value"] == "[1, 2, 3]", done
    agent.wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    done = probing(process.pid, "inject", "-e", "1", "-L", "/lib/libc.so.6")
    assert done.code == USAGE and "'--execute' with '--library'" in done.err, done


def test_loader_refuses(build, idle, tmp_path):
    source = tmp_path / "needs.c"
    source.write_text("int nowhere_to_be_found(void); int f(void) { return nowhere_to_be_found(); }")
    library = tmp_path / "needs.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    before = Look(idle.pid)
    code, _, err = inject(idle.pid, library)
    assert code == FAILED and "undefined symbol: nowhere_to_be_found" in err
    wait_until_same(before)
    assert_loads(idle, build.library())


def test_gone(build):
    code, _, err = inject(2 ** 22 - 1, build.library())
    assert code == NO_PROCESS and err


def test_stopped(build, idle):
    os.kill(idle.pid, signal.SIGSTOP)
    try:
        environment.wait_until(lambda: state(idle.pid) == "T")
        assert_refused(idle, build.library(), FAILED, "stopped by job control", "kill -CONT")
        assert state(idle.pid) == "T"
    finally:
        os.kill(idle.pid, signal.SIGCONT)
    idle.wait_for_progress()
    assert_loads(idle, build.library())


def test_traced(build, idle):
    gdb = subprocess.Popen(["gdb", "-q", "-p", str(idle.pid)], stdin=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        environment.wait_until(
            lambda: support.thread_status(idle.pid)["TracerPid"] == str(gdb.pid))
        code, _, err = inject(idle.pid, build.library())
        assert code == PERMISSION and "being traced by process %d" % gdb.pid in err
    finally:
        gdb.communicate(b"detach\nquit\n", timeout=60)
    idle.wait_for_progress()


TRACER = """import ctypes, sys
SEIZE = 0x4206
assert ctypes.CDLL(None).ptrace(SEIZE, int(sys.argv[1]), None, None) == 0
print("traces", flush=True)
sys.stdin.read()
"""


def sleeps(pid):
    """In nanosleep() or clock_nanosleep(): their numbers on x86_64 and aarch64."""
    try:
        return Path("/proc/%d/syscall" % pid).read_text().split()[0] in ("35", "230", "101", "115")
    except OSError:
        return False  # it has just ended


def test_traced_for_a_moment(build, idle):
    """As by somebody else's dump: it is waited for."""
    with subprocess.Popen([sys.executable, "-c", TRACER, str(idle.pid)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout.readline() == b"traces\n"
        with subprocess.Popen([support.BINARY, str(idle.pid), "inject", "--library", str(build.library())], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as injecting:
            environment.wait_until(lambda: injecting.poll() is not None or sleeps(injecting.pid))
            tracer.kill()
            _, err = injecting.communicate(timeout=60)
        assert injecting.returncode == OK, err
    idle.wait_for_progress()


def test_leader_gone(build):
    with Checked(build.program("fault_places"), "leader") as target:
        environment.wait_until(lambda: state(target.pid) == "Z")
        library = build.library()
        code, out, err = inject(target.pid, library, "--symbol", "fault_touch")
        assert code == OK, err
        assert out["tid"] != target.pid
        target.wait_for_progress()


def test_without_breakpoints(build):
    """Where perf_event_open() is forbidden, threads in malloc() are checked until one is outside."""
    forbid = environment.build("env_filter.c", "env_filter")
    if subprocess.run([str(forbid), "perf_event_open", "/bin/true"], check=False).returncode:
        pytest.skip("no seccomp filters here")
    with Checked(build.program("fault_heap"), "heap", "2") as target:
        library = build.library()
        done = subprocess.run(
            [str(forbid), "perf_event_open", support.BINARY, "-t", str(target.pid), "inject",
             "--library", library], stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == OK, done.stderr
        assert is_mapped(target.pid, library)
        target.wait_for_progress()


def test_at_the_end_of_its_stack(build):
    """The kernel extends it, as it does for the handler of a signal."""
    with Checked(build.program("fault_places"), "deep") as target:
        target.wait_for_progress()
        for _ in range(3):
            assert_loads(target, build.library())


def test_no_room_on_its_stack(build):
    """The limit of a stack's growth is that of the writing process."""
    with Checked(build.program("fault_places"), "deep") as target:
        target.wait_for_progress()
        before = Look(target.pid)
        done = subprocess.run(
            ["sh", "-c", 'ulimit -s 96; exec "$@"', "sh", support.BINARY, "-t", str(target.pid),
             "inject", "--library", build.library()], stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == FAILED and b"has no room for" in done.stderr, done.stderr
        assert not Look(target.pid).differences(before)


def test_in_the_vdso(build):
    """A thread that reads a clock is hijacked in place: it holds no lock."""
    with Checked(build.program("fault_heap"), "clocks") as target:
        for _ in range(5):
            assert assert_loads(target, build.library())["stops"] == 1


def test_vfork_parent(build):
    with Checked(build.program("fault_places"), "vfork") as target:
        environment.wait_until(lambda: state(target.pid) == "D")
        assert_refused(target, build.library(), TIMEOUT, "sleep in the kernel")


def test_vfork_parent_with_threads(build):
    with Checked(build.program("fault_places"), "vfork-thread") as target:
        environment.wait_until(lambda: state(target.pid) == "D")
        assert assert_loads(target, build.library())["tid"] != target.pid


FILTERS = [
    ("reboot", "kill", True), ("clone3", "errno", True), ("memfd_create", "errno", True),
    ("mmap", "kill", False), ("mmap", "trap", False), ("mprotect", "kill", False),
    ("mprotect", "errno", False), ("clone3", "kill", False), ("memfd_create", "trap", False), ("restart_syscall", "kill", False)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read seccomp filters")
@pytest.mark.parametrize("call, action, allowed", FILTERS)
def test_filtered(build, call, action, allowed):
    with Checked(build.program("fault_places"), "filter", call, action) as target:
        if allowed:
            assert_loads(target, build.library())
        else:
            assert_refused(target, build.library(), UNSUPPORTED,
                           "its seccomp filter does not allow %s()" % call)


def test_static(build):
    with Checked(build.program("fault_places", "-static"), "idle") as target:
        assert_refused(target, build.library(), UNSUPPORTED, "statically linked")


def test_not_position_independent(build):
    with Checked(build.program("fault_places", "-no-pie"), "idle") as target:
        assert_loads(target, build.library())


def test_32_bit(build):
    program = environment.build("env_i386.S", "i386", "-m32", "-nostdlib", "-static",
                                optional=True)
    if not program:
        pytest.skip("no compiler for 32-bit programs")
    with support.Program([program]) as target:
        code, _, err = inject(target.pid, build.library())
        assert code == UNSUPPORTED and "32-bit" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_other_user(build):
    with Checked(build.program("fault_places"), "idle") as target:
        library = build.library()
        os.chmod(build.folder, 0o755)
        done = subprocess.run(
            [support.BINARY, "-t", str(target.pid), "inject", "-L", library],
            preexec_fn=lambda: os.setuid(65534), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == PERMISSION, done
        assert b"runs as user 0 and we are user 65534" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root")
@pytest.mark.parametrize("proc", [True, False], ids=["with-proc", "without-proc"])
def test_chroot(build, tmp_path, proc):
    root = tmp_path / "root"
    make_root(root, build.program("fault_places"))
    shared = root / "shared"
    shared.write_bytes(bytes(4096))
    script = 'mkdir -p "$0/proc" && %s exec chroot "$0" /program /shared idle' % (
        'mount -t proc proc "$0/proc" &&' if proc else "")
    with support.Program(["unshare", "-m", "sh", "-c", script, root]) as target:
        assert target.line() == "ready"
        library = build.library()
        before = Look(target.pid)
        code, out, err = inject(target.pid, library, "--symbol", "fault_touch")
        assert code == OK, err
        assert out["way"] == ("from memory" if proc else "from a copy")
        assert out["value"] == 1000
        wait_until_same(before)
        assert not list((root / "tmp").iterdir())
        code, out, err = inject(target.pid, library)
        assert target.alive()


@needs("no mount namespaces here", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp")
def test_own_mounts(build):
    """The library's folder is hidden from the target by a mount of its own."""
    with Checked(build.program("fault_places"), "idle",
                 before=["unshare", "-m", "sh", "-c",
                         'mount -t tmpfs -o noexec none /mnt && exec "$@"', "sh"]) as target:
        library = build.library()
        hidden = Path("/mnt") / ("probing-%d.so" % os.getpid())
        shutil.copy(library, hidden)
        try:
            code, out, err = inject(target.pid, hidden, "--symbol", "fault_touch")
            assert code == OK, err
            assert out["way"] == "from memory" and out["value"] == 1000
        finally:
            hidden.unlink()


@needs("no pid namespaces here", "unshare", "-p", "-f", "true")
def test_own_pids(build):
    with Checked(build.program("fault_places"), "idle",
                 before=["unshare", "-p", "-f", "--mount-proc"]) as outer:
        outer.pid = environment.child_of(outer.pid)
        assert_loads(outer, build.library())


def test_deleted_files(build, tmp_path):
    """The C library was replaced on disk, as an upgrade does."""
    program = build.program("fault_places")
    listing = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    for path in [word for word in listing.split() if word.startswith("/")]:
        shutil.copy(path, tmp_path)
    loader = tmp_path / "ld-linux-x86-64.so.2"
    with Checked(program, "idle", before=[loader, "--library-path", tmp_path]) as target:
        for path in tmp_path.glob("*.so*"):
            path.unlink()
        assert_loads(target, build.library())


@pytest.fixture
def doomed(build):
    """A target that is not checked at the end."""
    target = Checked(build.program("fault_places"), "idle")
    yield target
    target.target.__exit__()
    target.shared.close()


def test_crash_at_loading(build, doomed):
    code, _, err = inject(doomed.pid, build.library("-DCRASH"))
    assert code == NO_PROCESS and "ended while" in err and "code of the library" in err


def test_hang_at_loading(build, doomed):
    start = time.monotonic()
    code, _, err = inject(doomed.pid, build.library("-DHANG"), "--timeout", "1")
    assert code == TIMEOUT and "is still loading" in err and "it waits in " in err, err
    assert time.monotonic() - start < 10
    doomed.wait_for_progress()


def test_every_interpreter(build, interpreter):
    """Old and new C libraries come with them."""
    with support.Target(interpreter, faults.PROGRAMS / "sleeper.py") as target:
        assert target.line() == "ready"
        library = build.library()
        before = Look(target.pid)
        code, out, err = inject(target.pid, library, "--symbol", "fault_touch")
        assert code == OK, err
        assert out["value"] == 1000
        wait_until_same(before)
        assert target.alive()
