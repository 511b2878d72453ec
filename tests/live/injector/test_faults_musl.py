# SPDX-License-Identifier: GPL-3.0-or-later
"""Injection into programs that run on musl: the cells of the fault matrix that depend on the C library,
and the agent's surroundings there."""
import os
import shutil
import signal
import subprocess
import time

import pytest

import environment
import faults
import support
from environment import OK, UNSUPPORTED
from faults import (
    MOST_STEPS, SLEEPERS, STEPS, Cell, Checked, Look, at_step, inject, is_mapped, look_settled,
    run_cell, wait_until_same)

pytestmark = pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc")

HEADERS = ["-idirafter", "/usr/include",
           "-idirafter", "/usr/include/%s-linux-gnu" % os.uname().machine]


class Build(faults.Build):
    """The same programs and libraries, for musl."""

    compiler = ["musl-gcc", *HEADERS]


@pytest.fixture(scope="module")
def build():
    made = Build()
    yield made
    made.remove()
    faults.write_counts()


@pytest.fixture
def idle(build):
    with Checked(build.program("fault_places"), "idle") as target:
        yield target


def assert_loads(target, library, **options):
    before = look_settled(target.pid)
    code, out, err = inject(target.pid, library, "--symbol", "fault_touch", "--arg", "seven77")
    assert code == OK, err
    assert out["value"] == 1007
    for key, value in options.items():
        assert out[key] == value, out
    wait_until_same(before)
    target.wait_for_progress()


def test_symbol_of_a_loaded_library(build, idle):
    library = build.library()
    assert_loads(idle, library, already=False)
    assert_loads(idle, library, already=True)


@pytest.mark.parametrize("kind, threads", [
    ("heap", 1), ("heap", 5), ("malloc", 1), ("malloc", 5), ("dlopen", 1), ("dlopen", 3),
    ("threads", 1), ("threads", 3)])
def test_heap_and_loader(build, kind, threads):
    program = build.program("fault_heap")
    run_cell("musl, %s, %d thread%s" % (kind, threads, "s" * (threads > 1)), build,
             lambda: Checked(program, kind, threads), threads=kind != "threads").assert_loaded()


@pytest.mark.parametrize("kind, flag", [("ymm", "avx"), ("zmm", "avx512f")])
def test_registers(build, kind, flag):
    with open("/proc/cpuinfo", encoding="ascii") as file:
        if flag not in file.read().split():
            pytest.skip("this processor has no " + flag)
    program = build.program("fault_registers")
    run_cell("musl, registers: " + kind, build, lambda: Checked(program, kind)).assert_loaded()


@pytest.mark.parametrize("kind", ["timer", "blocked", "ignored", "trap"])
def test_signals(build, kind):
    program = build.program("fault_signals")
    run_cell("musl, signals: " + kind, build, lambda: Checked(program, kind)).assert_loaded()


@pytest.mark.parametrize("program, call", [
    ("fault_waits", "read"), ("fault_waits", "poll"), *(("fault_calls", call) for call in (
        "nanosleep", "futex", "sem", "poll", "select", "pselect", "epoll", "recv", "sigtimedwait",
        "semtimedop", "wait", "sigsuspend"))])
def test_calls(build, program, call):
    made = build.program(program)
    run_cell("musl, system call: %s%s" % (call, " by others" * (program == "fault_waits")), build,
             lambda: Checked(made, call), workers=SLEEPERS).assert_loaded()


@pytest.mark.parametrize("program, arguments", [
    ("fault_registers", ["ymm"]), ("fault_heap", ["heap", "2"]), ("fault_waits", ["read"])],
    ids=lambda value: str(value))
def test_killed_before_each_step(build, program, arguments):
    """The way back uses the kernel's signal frame, whatever the C library is."""
    if not STEPS:
        pytest.skip("no build with fault steps: $PROBING_FAULT_STEPS")
    cell = Cell("musl, killed before each step: %s %s" % (program, " ".join(arguments)))
    with Checked(build.program(program), *arguments) as target:
        before = look_settled(target.pid)
        for step in range(1, MOST_STEPS):
            target.wait_for_progress()
            said = at_step(step, target.pid, build)
            target.wait_for_progress()
            if said is None:
                break
            assert said[0] == -signal.SIGKILL, said
            cell.run()
        assert 20 < step < MOST_STEPS - 1
        code, _, err = inject(target.pid, build.library())
        assert code == OK, err
        cell.count["loaded"] += 1
        # A helping thread that lost us ends by itself after some seconds.
        end = time.monotonic() + 60
        while support.thread_ids(target.pid) != before.threads:
            assert time.monotonic() < end
            time.sleep(0.05)
        look = Look(target.pid)
        assert not look.traced and not look.stopped
        assert (look.signals, look.descriptors) == (before.signals, before.descriptors)
    cell.passed()


def test_places(build):
    """From memory into a root of its own; beside a thread in vfork(), and without the first."""
    for kind in ("leader", "vfork-thread"):
        with Checked(build.program("fault_places"), kind) as target:
            environment.wait_until(
                lambda: support.thread_status(target.pid)["State"][0] in "ZD")
            code, out, err = inject(target.pid, build.library(), "--symbol", "fault_touch")
            assert code == OK, err
            assert out["tid"] != target.pid
            target.wait_for_progress()


def test_static(build):
    with Checked(build.program("fault_places", "-static"), "idle") as target:
        library = build.library()
        code, _, err = inject(target.pid, library)
        assert code == UNSUPPORTED and "statically linked" in err
        assert not is_mapped(target.pid, library)


def test_deleted_c_library(build, tmp_path):
    """Replaced on disk, as an upgrade does, and in no other place."""
    loader = tmp_path / "ld-musl-test.so.1"
    shutil.copy("/lib/ld-musl-%s.so.1" % os.uname().machine, loader)
    with Checked(build.program("fault_places"), "idle", before=[loader]) as target:
        loader.unlink()
        assert_loads(target, build.library())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root")
@pytest.mark.parametrize("proc", [True, False], ids=["with-proc", "without-proc"])
def test_chroot(build, tmp_path, proc):
    """As in a container: the loader has the name that it has there."""
    loader = "ld-musl-%s.so.1" % os.uname().machine
    for name in ("lib", "proc", "tmp"):
        (tmp_path / name).mkdir()
    shutil.copy("/lib/" + loader, tmp_path / "lib" / loader)
    shutil.copy(build.program("fault_places"), tmp_path / "program")
    (tmp_path / "shared").write_bytes(bytes(4096))
    script = '%s exec chroot "$0" /program /shared idle' % (
        'mount -t proc proc "$0/proc" &&' if proc else "")
    with support.Program(["unshare", "-m", "sh", "-c", script, tmp_path]) as target:
        assert target.line() == "ready"
        before = look_settled(target.pid)
        code, out, err = inject(target.pid, build.library(), "--symbol", "fault_touch")
        assert code == OK, err
        assert (out["way"], out["value"]) == ("from memory" if proc else "from a copy", 1000)
        wait_until_same(before)


def test_library_with_thread_local_data(build, idle, tmp_path):
    """Each thread has its own, including threads that existed before."""
    source = tmp_path / "local.c"
    source.write_text("static __thread long mine = 40;\n"
                      "long next(const char *text) { return ++mine + *text - '0'; }\n")
    library = tmp_path / "local.so"
    subprocess.run([*build.compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    code, out, err = inject(idle.pid, library, "--symbol", "next", "--arg", "1")
    assert (code, out["value"]) == (OK, 42), err
    idle.wait_for_progress()


def test_loader_refuses(build, idle, tmp_path):
    source = tmp_path / "needs.c"
    source.write_text("int nowhere_to_be_found(void);\n"
                      "int f(void) { return nowhere_to_be_found(); }\n")
    library = tmp_path / "needs.so"
    subprocess.run([*build.compiler, "-shared", "-fPIC", "-Wl,-z,now", "-o", library, source],
                   check=True)
    before = look_settled(idle.pid)
    code, _, err = inject(idle.pid, library)
    assert code == 1 and "nowhere_to_be_found: symbol not found" in err
    wait_until_same(before)
    assert_loads(idle, build.library())


def test_agent_loads(idle):
    """It was linked with glibc: musl takes its symbols without their versions, and itself for
    libc.so.6. Without a Python in the process it starts, and answers that."""
    agent = os.path.join(os.path.dirname(support.BINARY), "libprobing-agent.so")
    before = look_settled(idle.pid)
    code, out, err = inject(idle.pid, agent, "--symbol", "probing_agent_start")
    assert code == OK and out["value"] == 0, (out, err)
    environment.wait_until(lambda: len(support.thread_ids(idle.pid)) == 2)
    status = subprocess.run([support.BINARY, str(idle.pid), "agent", "status"],
                            stdout=subprocess.PIPE, check=True).stdout.decode()
    assert str(idle.pid) in status, status
    subprocess.run([support.BINARY, str(idle.pid), "agent", "stop"], stdout=subprocess.DEVNULL,
                   check=True)
    wait_until_same(before)
    idle.wait_for_progress()
