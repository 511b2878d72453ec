# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the functions of a target's C library are found: in its file, in its memory when the file cannot be had, and
the tables for unwinding in a separate debug file."""
import json
import os
import shutil
import subprocess

import pytest

import faults
import support
from environment import OK
from faults import Look, wait_until_same

NOBODY = 65534
FOLDER = os.path.dirname(support.BINARY)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def as_nobody(*words):
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *words]


def injected(program, pid, library, before=()):
    """The exit code, the output, and the log."""
    done = subprocess.run(
        [*before, program, str(pid), library, "fault_touch", "four", "--json"],
        env=dict(os.environ, PROBING_LOG="3"), stdin=subprocess.DEVNULL, timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    out = json.loads(done.stdout.decode()) if done.stdout else None
    return done.returncode, out, done.stderr.decode(errors="replace")


@pytest.fixture
def build():
    made = faults.Build()
    os.chmod(made.folder, 0o755)
    yield made
    made.remove()


def start(command, shared):
    target = support.Program(as_nobody(*command[:-1], shared.path, *command[-1]))
    assert target.line() == "ready"
    return target


def work(target, shared, folder, build, word):
    """Injects again and again; the program itself says whether it was harmed."""
    program = folder / "probing-inject"
    shutil.copy(os.path.join(FOLDER, "probing-inject"), program)
    before = Look(target.pid)
    for _ in range(faults.PER_PROCESS):
        code, out, log = injected(program, target.pid, build.library(), as_nobody())
        assert code == OK and out["value"] == 1004, log
        assert word in log, log
        wait_until_same(before)
    shared[faults.Checked.STOP] = 1
    code, errors = target.wait()
    assert code == 0 and not shared[faults.Checked.ERRORS], errors


@pytest.fixture
def shared():
    made = support.Shared()
    os.chmod(made.path, 0o666)
    yield made
    made.close()


@needs_root
@pytest.mark.parametrize("words", [["fault_places", "idle"], ["fault_heap", "heap", "2"]],
                         ids=["idle", "heap"])
def test_files_gone(build, shared, words):
    """An ordinary user cannot open the file of a mapping: a deleted file is only in memory."""
    program = build.program(words[0])
    listing = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    for path in [word for word in listing.split() if word.startswith("/")]:
        shutil.copy(path, build.folder)
    loader = next(build.folder.glob("ld-linux-*.so.*"))
    with start([loader, "--library-path", build.folder, program, words[1:]], shared) as target:
        for path in [*build.folder.glob("lib*.so.*"), loader, program]:
            path.unlink()
        work(target, shared, build.folder, build, "libc.so.6: no file")


@needs_root
@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc")
@pytest.mark.parametrize("words", [["fault_places", "idle"], ["fault_heap", "heap", "2"]],
                         ids=["idle", "heap"])
def test_musl_gone(build, shared, words):
    build.compiler = ["musl-gcc", "-idirafter", "/usr/include", "-idirafter",
                      "/usr/include/%s-linux-gnu" % os.uname().machine]
    loader = build.folder / "ld-musl-test.so.1"
    shutil.copy("/lib/ld-musl-%s.so.1" % os.uname().machine, loader)
    program = build.program(words[0])
    subprocess.run(["patchelf", "--set-interpreter", loader, program], check=True)
    with start([program, words[1:]], shared) as target:
        loader.unlink()
        program.unlink()
        work(target, shared, build.folder, build, "ld-musl-test.so.1: no file")


@needs_root
def test_debug_file(build, tmp_path):
    """A program without unwind tables, whose debug file is found in its root by build-id."""
    program = build.program("fault_places", "-fno-asynchronous-unwind-tables",
                            "-fno-exceptions", "-Wl,--build-id")
    notes = subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, check=True)
    build_id = notes.stdout.decode().split("Build ID: ")[1].split()[0]
    debug = tmp_path / "usr/lib/debug/.build-id" / build_id[:2] / (build_id[2:] + ".debug")
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    listing = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    for path in [word for word in listing.split() if word.startswith("/")]:
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path[1:])
    shutil.copy(program, tmp_path / "program")
    (tmp_path / "shared").write_bytes(bytes(4096))
    (tmp_path / "tmp").mkdir()
    with support.Program(["chroot", tmp_path, "/program", "/shared", "idle"]) as target:
        assert target.line() == "ready"
        before = Look(target.pid)
        code, out, log = injected(os.path.join(FOLDER, "probing-inject"), target.pid,
                                  build.library())
        assert code == OK and out["value"] == 1004, log
        assert "/%s has the debug information of" % debug.relative_to(tmp_path) in log, log
        wait_until_same(before)
        assert target.alive()
