# SPDX-License-Identifier: GPL-3.0-or-later
"""Unreadable targets: one clear message, the documented exit code, and no effect on the target."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import environment
import support
from environment import (NO_PROCESS, OK, PERMISSION, SCRIPT, UNSUPPORTED, Started, assert_read,
                         process_state)

NOBODY = 65534
WAIT = "import sys; print('ready'); sys.stdout.flush(); sys.stdin.read()"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture(scope="module")
def open_binary():
    """The command where everybody may run it."""
    with tempfile.TemporaryDirectory(prefix="probing-refusals-") as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(support.BINARY, folder)


def held(pid):
    """The threads of a process that do not run freely."""
    return {tid: held for tid, held in process_state(pid).items()
            if held[0] in "TtZ" or held[1] != "0"}


@pytest.fixture
def refused(tmp_path, open_binary):
    """refused(PID, CODE, *words): all commands say the same, at once, and touch nothing."""

    def refuse(pid, code, *words, hint=True, before=(), **options):
        snapshot = tmp_path / "refused.snapshot"
        try:
            state = held(pid)
        except (FileNotFoundError, ProcessLookupError):
            state = None
        said = set()
        for command in (["debug", "--dump"], ["debug", "--dump", "--json"],
                        ["debug", "--dump", "--nonblocking", "--native"],
                        ["debug", "--dump", "--freeze"], ["backtrace"],
                        ["snapshot", "-o", str(snapshot)]):
            done = subprocess.run(
                [*map(str, before), open_binary, "-p", str(pid), *command], cwd="/", timeout=20,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                check=False, **options)
            assert done.returncode == code and not done.stdout, (command, done)
            assert not snapshot.exists()
            said.add(done.stderr.decode())
        text, = said
        message, *rest = text.rstrip("\n").split("\n")
        assert message.startswith("probing: "), text
        assert len(rest) == hint and all(line.startswith("  ") for line in rest), text
        for word in words:
            assert word in text, text
        if state is not None:
            assert held(pid) == state
        return text

    return refuse


def started(*command, **options):
    return Started(command, rest=1, **options)


# No Python

def test_no_process(refused):
    with subprocess.Popen(["true"]) as process:
        process.wait()
        refused(process.pid, NO_PROCESS, "No such process", "probing list")


def test_pid_that_cannot_be(refused):
    refused(2 ** 22 + 1, NO_PROCESS, "No such process")


def test_other_program(refused):
    with support.Program(["cat"]) as process:
        process.send(b"begun\n")
        assert process.line() == "begun"  # before that, it may have no arguments yet
        refused(process.pid, UNSUPPORTED, "this is not a Python", "probing list")


def test_just_forked(refused):
    """A shell that has not yet called exec."""
    with support.Program(["sh", "-c", "echo ready; read line"]) as process:
        process.line()
        refused(process.pid, UNSUPPORTED, "this is not a Python")


@environment.needs("gdb is not installed", "gdb", "--version")
def test_program_that_embeds_python_for_itself(probing):
    """gdb has a Python inside: it is shown, or it is said that it has none; never a wrong word."""
    with subprocess.Popen(["gdb", "-q", "-nx"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        assert os.read(process.stdout.fileno(), 100)
        result = probing(process.pid, "debug", "--dump", "--json")
        assert result.code in (OK, UNSUPPORTED), result
        process.kill()


def test_zombie(refused):
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        refused(process.pid, UNSUPPORTED, "zombie", "parent, process %d," % os.getpid())


def test_zombie_python(refused, newest):
    with subprocess.Popen([newest.exe, "-c", ""], env=newest.env) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        refused(process.pid, UNSUPPORTED, "zombie")


def kernel_threads():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if support.thread_status(int(name)).get("Kthread") == "1":
                    yield int(name)
            except FileNotFoundError:
                pass


def test_kernel_thread(refused):
    pid = next(kernel_threads(), None)
    if pid is None:
        pytest.skip("no thread of the kernel can be seen from here")
    refused(pid, UNSUPPORTED, "thread of the kernel", hint=False)


def test_32_bit(refused, tmp_path):
    program = tmp_path / "program"
    built = subprocess.run(
        ["cc", "-m32", "-nostdlib", "-static", "-o", str(program),
         str(environment.PROGRAMS / "env_i386.S")], stderr=subprocess.DEVNULL, check=False)
    if built.returncode:
        pytest.skip("the compiler cannot make 32-bit programs")
    try:
        process = support.Program([program])
    except OSError:
        pytest.skip("the kernel runs no 32-bit programs")
    with process:
        refused(process.pid, UNSUPPORTED, "32-bit", hint=False)


def test_pypy_by_name(refused, tmp_path):
    """A program and a library that are called as PyPy's are."""
    (tmp_path / "library.c").write_text("int answer(void) { return 42; }")
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\nint answer(void);\n"
        "int main(void) { puts(\"ready\"); fflush(stdout); getchar(); return answer(); }")
    library, program = tmp_path / "libpypy3.9-c.so", tmp_path / "pypy3.9"
    for command in (["-shared", "-fPIC", "-o", library, tmp_path / "library.c"],
                    ["-o", program, tmp_path / "main.c", library,
                     "-Wl,-rpath," + str(tmp_path)]):
        subprocess.run(["cc", *map(str, command)], check=True)
    with started(program) as process:
        refused(process.python, UNSUPPORTED, "this is PyPy", "only CPython")


@pytest.mark.skipif(not shutil.which("pypy3"), reason="PyPy is not installed")
def test_pypy(refused):
    with started("pypy3", "-c", WAIT) as process:
        refused(process.python, UNSUPPORTED, "this is PyPy", "only CPython")


def python2():
    places = sorted(Path("/root/.pyenv/versions").glob("2.7*/bin/python2.7")) if \
        os.access("/root/.pyenv", os.R_OK) else []
    found = shutil.which("python2.7")
    return str(places[0]) if places else found


@pytest.mark.skipif(not python2(), reason="no Python 2.7 is installed")
def test_python2(refused):
    with started(python2(), "-c", WAIT) as process:
        refused(process.python, UNSUPPORTED, "Python 2", "3.4 to 3.15")


# Not permitted

NOBODYS = {"user": NOBODY, "group": NOBODY, "extra_groups": []}


@pytest.fixture(scope="module")
def nobodys_python():
    """An interpreter that everybody may run."""
    for interpreter in reversed(support.INTERPRETERS):
        if subprocess.run([interpreter.exe, "-c", "import threading, ctypes"], env=interpreter.env,
                          cwd="/", stderr=subprocess.DEVNULL, check=False,
                          **NOBODYS).returncode == 0:
            return interpreter
    return pytest.skip("no interpreter here may be run by everybody")


@as_root
def test_other_user(refused, newest):
    with started(newest.exe, "-c", WAIT, env=newest.env) as process:
        refused(process.python, PERMISSION, "it runs as user 0 and we are user %d" % NOBODY, "root",
                **NOBODYS)


@as_root
def test_own_process(open_binary, nobodys_python):
    """Without any privilege, our own processes can be read in full."""
    code = "exec(compile(%r, '/srv/%s', 'exec'))" % (SCRIPT.read_text("utf-8"), SCRIPT.name)
    with Started([nobodys_python.exe, "-c", code], env=dict(nobodys_python.env, BUSY="1"), cwd="/",
                 **NOBODYS) as process:
        for mode in ([], ["--nonblocking"], ["--freeze"], ["--native"]):
            done = subprocess.run(
                [open_binary, "-p", str(process.python), "debug", "--dump", "--json", *mode],
                cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **NOBODYS)
            assert done.returncode == OK and not done.stderr, done
            found = json.loads(done.stdout.decode())
            assert_read(found, busy=True, reads=("idle", "stopped"))


@as_root
def test_not_dumpable(refused, nobodys_python):
    code = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); " + WAIT
    with started(nobodys_python.exe, "-c", code, env=nobodys_python.env, cwd="/",
                 **NOBODYS) as process:
        refused(process.python, PERMISSION, "not dumpable", "root", **NOBODYS)


@as_root
def test_other_group(refused, nobodys_python):
    with started(nobodys_python.exe, "-c", WAIT, env=nobodys_python.env, cwd="/", user=NOBODY,
                 group=1, extra_groups=[]) as process:
        refused(process.python, PERMISSION, "it runs in group 1 and we are in group %d" % NOBODY,
                **NOBODYS)


@as_root
@environment.needs("setpriv is not installed", "setpriv", "--version")
def test_root_without_capabilities(refused, nobodys_python):
    """As in a container: root, but without CAP_SYS_PTRACE."""
    drop = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]
    with started(nobodys_python.exe, "-c", WAIT, env=nobodys_python.env, cwd="/",
                 **NOBODYS) as process:
        refused(process.python, PERMISSION, "it runs as user %d and we are user 0" % NOBODY,
                "SYS_PTRACE", before=drop)
    with started(nobodys_python.exe, "-c", WAIT, env=nobodys_python.env) as process:
        refused(process.python, PERMISSION, "has capabilities that we lack", "SYS_PTRACE",
                before=drop)


@environment.needs("no user namespaces here", "unshare", "-U", "-r", "true")
def test_out_of_a_user_namespace(refused, newest):
    """From inside of a namespace, processes outside of it may not be read."""
    with started(newest.exe, "-c", WAIT, env=newest.env) as process:
        refused(process.python, PERMISSION, "user namespace outside of ours",
                before=["unshare", "-U", "-r"])


YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


@as_root
@pytest.mark.skipif(not YAMA.exists(), reason="the kernel has no Yama")
def test_yama(refused, nobodys_python):
    before = YAMA.read_text()
    with started(nobodys_python.exe, "-c", WAIT, env=nobodys_python.env, cwd="/",
                 **NOBODYS) as process:
        try:
            YAMA.write_text("1")
            refused(process.python, PERMISSION, "kernel.yama.ptrace_scope is 1", **NOBODYS)
        finally:
            YAMA.write_text(before)


# Under a filter of system calls

@pytest.fixture(scope="module")
def filter_calls():
    program = environment.build("env_filter.c", "env_filter")
    if subprocess.run([str(program), "none", "/bin/true"], check=False).returncode:
        pytest.skip("no seccomp filters here")
    return program


def filtered(program, calls, pid, *options):
    done = subprocess.run(
        [str(program), calls, support.BINARY, "-p", str(pid), "debug", "--dump", "--json",
         *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_reading_is_filtered(newest, filter_calls):
    """There is another way to read memory, which is as good."""
    with Started([newest.exe, SCRIPT], env=dict(newest.env, BUSY="1")) as process:
        code, out, err = filtered(filter_calls, "process_vm_readv", process.python)
        assert code == OK and not err, err
        threads = assert_read(json.loads(out), busy=True)
        assert threads["worker"]["read"] == "stopped"


@pytest.mark.parametrize("calls", ["ptrace", "ptrace,process_vm_readv"])
def test_stopping_is_filtered(newest, filter_calls, calls):
    """Sleeping threads are read as always; running ones are read without a stop, with a message."""
    with Started([newest.exe, SCRIPT], env=dict(newest.env, BUSY="1")) as process:
        code, out, err = filtered(filter_calls, calls, process.python)
        found = json.loads(out)
        assert code == OK, err
        assert assert_read(found, busy=True)["worker"]["read"] == "unstable"
        warning, = found["warnings"]
        assert "without being stopped" in warning and "not permitted" in warning
        code, out, err = filtered(filter_calls, calls, process.python, "--nonblocking")
        assert code == OK and not json.loads(out)["warnings"] and not err
        code, out, err = filtered(filter_calls, calls, process.python, "--freeze")
        assert code == PERMISSION and not out and "--nonblocking" in err, (code, out, err)
        environment.assert_untouched(process.python)


def test_killed_while_it_is_read(newest):
    """It ends while it is read: a dump, or that it is gone; at once, and never a crash."""
    for delay in range(support.count(20, 500)):
        with Started([newest.exe, SCRIPT], env=dict(newest.env, BUSY="1")) as process:
            with subprocess.Popen(
                    [support.BINARY, "-p", str(process.python), "debug", "--dump", "--native"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
                time.sleep(delay % 20 / 1000)
                os.kill(process.python, signal.SIGKILL)
                out, err = command.communicate(timeout=30)
            assert command.returncode in (OK, UNSUPPORTED, NO_PROCESS), (out, err)
            if command.returncode:
                assert err.startswith(b"probing: ") and not out, (out, err)
