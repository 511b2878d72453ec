# SPDX-License-Identifier: GPL-3.0-or-later
"""Pythons in other namespaces and roots, and Pythons whose files are stripped, moved, or gone."""
import json
import os
import shutil
import subprocess

import pytest

import environment
import support
from environment import (ONE_EACH, OK, SCRIPT, Copy, Started, assert_read, assert_untouched,
                         drop_section_headers, needs, strip)

needs_mount = needs("no mount namespaces here", "unshare", "-m", "mount", "--bind", "/tmp", "/tmp")
needs_pid = needs("no pid namespaces here", "unshare", "-p", "-f", "true")
needs_user = needs("no user namespaces here", "unshare", "-U", "-r", "true")
MODES = [(), ("--nonblocking",), ("--freeze",)]


@pytest.fixture
def read(probing, tmp_path):
    """read(PROCESS, *options): the dump, made without help of any earlier one's cache."""

    def read_it(process, *options, busy=False, before=(), **expected):
        env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        found = {}
        for mode in [options] if options else MODES:
            result = probing("-p", process.python, "debug", "--dump", "--json", *mode, env=env)
            assert result.code == OK, result
            found = json.loads(result.out)
            reads = ("idle", "stopped") if "--freeze" in mode else ("idle",)
            assert found["target"]["pid"] == process.python and not found["warnings"], found
            assert_read(found, busy, reads=reads, **expected)
        assert process.alive()
        assert_untouched(process.python)
        return found

    return read_it


def command(interpreter):
    return [interpreter.exe, SCRIPT]


# Namespaces

@needs_mount
@ONE_EACH
def test_moved_by_a_mount(interpreter, read, tmp_path):
    """Where the interpreter is for the process, there are files of the same names for us that are
    something else."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    copy = Copy(interpreter, inside)
    shutil.copytree(str(inside), str(outside))
    for path in outside.glob("*/*"):
        path.write_bytes(b"\x7fELF, but no more than that")
    copy.exe = outside / "bin" / copy.exe.name
    copy.holder = outside / copy.holder.relative_to(inside)
    copy.env["LD_LIBRARY_PATH"] = str(outside / "lib")
    mount = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"',
             inside, outside]
    with copy.start(busy=True, before=mount) as process:
        read(process, busy=True)
        # The other way round: for us there is nothing at all.
        shutil.rmtree(str(outside), ignore_errors=True)
        read(process, busy=True)


@needs_mount
def test_source_of_another_mount(probing, newest, tmp_path):
    """The source lines come from the file as the process sees it."""
    folder = tmp_path / "seen"
    (tmp_path / "real").mkdir()
    folder.mkdir()
    shutil.copy(str(SCRIPT), str(tmp_path / "real"))
    (folder / SCRIPT.name).write_text("this is another file\n" * 100)
    mount = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"',
             tmp_path / "real", folder]
    with Started([*mount, newest.exe, folder / SCRIPT.name], env=newest.env) as process:
        result = probing("-p", process.python, "debug", "--dump", "--source")
    assert result.code == OK, result
    assert "the main thread rests here" in result.out and "another file" not in result.out, result


@needs_pid
@ONE_EACH
def test_pid_namespace(interpreter, read):
    """Thread ids are ours, in a namespace inside of a namespace too."""
    nested = ["unshare", "-p", "-f", "unshare", "-p", "-f"]
    for before in (nested[:3], nested):
        with Started([*before, *command(interpreter)], env=dict(interpreter.env, BUSY="1")) as process:
            assert process.inner_pid < process.python
            found = read(process, busy=True)
            tids = support.thread_ids(process.python)
            assert {thread["tid"] for thread in found["threads"]} <= set(tids)
            main = next(t for t in found["threads"] if t["name"] == "MainThread")
            assert main["tid"] == process.python


@needs_pid
@pytest.mark.parametrize("words", [
    ("PID", "dump"), ("PID", "query", "SELECT 1 FROM python.threads"), ("PID", "eval", "1"), ("PID", "inject"),
    ("PID", "memory"), ("PID", "perf", "--duration", "10ms"), ("PID", "debug", "--pause", "--max", "1s"),
    ("PID", "snapshot", "-o", "-"), ("-t", "threads.py", "dump"), ("list",), ("overview", "--json"),
    ("why", "--json"), ("top", "PID", "--batch", "--count", "1"),
    ("query", "SELECT pid FROM system.process"), ("cluster", "nodes"), ("export", "prometheus"), ("doctor", "PID")],
    ids=" ".join)
def test_the_proc_of_another_pid_namespace(probing, target, words):
    """Its numbers belong to other processes: reading by them would mix data of two processes."""
    process = target("threads.py")
    done = subprocess.run(
        ["unshare", "-p", "-f", support.BINARY, *(str(process.pid) if word == "PID" else word for word in words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    told = done.stdout + done.stderr
    assert done.returncode == environment.FAILED and b"that of another pid namespace" in told, done
    assert str(process.pid).encode() not in done.stdout and b"threads.py" not in done.stdout, done
    assert process.alive()


@needs_user
@ONE_EACH
def test_user_namespace(interpreter, read):
    with Started(["unshare", "-U", "-r", *command(interpreter)],
                 env=dict(interpreter.env, BUSY="1")) as process:
        read(process, busy=True)


@needs("no container can be made here", "unshare", "-U", "-r", "-m", "-p", "-f", "--mount-proc",
       "true")
def test_inside_of_a_container(newest, tmp_path):
    """Both are in user, mount, and pid namespaces of their own, and we are root only there."""
    script = ('mkfifo in out; "$0" "$1" <in >out & python=$!; exec 3>in; read line <out; sleep 0.3; '
              '"$2" -p $python debug --dump --json')
    done = subprocess.run(
        ["unshare", "-U", "-r", "-m", "-p", "-f", "--mount-proc", "sh", "-c", script, newest.exe,
         str(SCRIPT), support.BINARY],
        env=newest.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=str(tmp_path), timeout=60, check=False)
    assert done.returncode == OK, done
    found = json.loads(done.stdout.decode())
    assert_read(found)
    assert found["target"]["pid"] < 100


ROOTS = [i for i in support.INTERPRETERS if i.chroot]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root")
@pytest.mark.parametrize("interpreter", ROOTS, ids=repr)
def test_other_root(interpreter, read):
    """An unmodified Debian below a folder: another libc, and paths that mean nothing here."""
    code = "exec(compile(%r, '/srv/%s', 'exec'))" % (SCRIPT.read_text("utf-8"), SCRIPT.name)
    env = {"PATH": "/usr/bin", "BUSY": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with Started([shutil.which("chroot"), interpreter.chroot, interpreter.chroot_exe, "-c", code],
                 env=env) as process:
        found = read(process, busy=True)
        assert found["target"]["exe"].startswith(interpreter.chroot)


# Files that are not there any more

@ONE_EACH
def test_deleted(interpreter, read, tmp_path):
    copy = Copy(interpreter, tmp_path / "copy")
    with copy.start(busy=True) as process:
        copy.exe.unlink()
        if copy.holder.exists():
            copy.holder.unlink()
        read(process, busy=True)


@pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
def test_replaced(interpreter, read, tmp_path):
    """Another file was moved there: one of another version, as in an upgrade."""
    other = next((i for i in support.INTERPRETERS if i.version != interpreter.version), None)
    if not other:
        pytest.skip("only this machine's: make test-interpreters gets more")
    copy = Copy(interpreter, tmp_path / "copy")
    with copy.start(busy=True) as process:
        for path in {copy.exe, copy.holder}:
            theirs = environment.parts(other)
            shutil.copy(theirs[1] or theirs[0], str(path) + ".new")
            os.rename(str(path) + ".new", str(path))
        read(process, busy=True)


def test_overwritten_source_is_still_read(probing, newest, tmp_path):
    """The script is gone: the lines' numbers are known, their text is not."""
    script = tmp_path / SCRIPT.name
    shutil.copy(str(SCRIPT), str(script))
    with Started([newest.exe, script], env=newest.env) as process:
        script.unlink()
        result = probing("-p", process.python, "debug", "--dump", "--json", "--source")
        assert result.code == OK, result
        assert_read(json.loads(result.out))


# Stripped

@pytest.mark.parametrize("change", [strip, drop_section_headers], ids=["stripped", "sectionless"])
@pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
def test_stripped(interpreter, change, read, tmp_path):
    if change is strip and "patched" in interpreter.exe:
        pytest.skip("Debian's are stripped, and strip breaks what patchelf has changed")
    copy = Copy(interpreter, tmp_path / "copy", change)
    with copy.start(busy=True) as process:
        read(process, busy=True)


@ONE_EACH
def test_a_program_that_is_called_like_an_extension(interpreter, read, tmp_path):
    server, env = environment.embed(interpreter, "env_embed.c", static=True)
    copy = tmp_path / ("server.cpython-%d%d-x86_64-linux-gnu.so" % interpreter.version[:2])
    shutil.copy(str(server), str(copy))
    with Started([copy, SCRIPT], env=env) as process:
        read(process)


@pytest.mark.parametrize("sections", [True, False], ids=["stripped", "sectionless"])
@ONE_EACH
def test_no_symbols_at_all(interpreter, sections, read, tmp_path):
    """Linked into a server without exported symbols: only the data identifies it."""
    server, env = environment.embed(interpreter, "env_embed.c", static=True)
    copy = tmp_path / "myserver"
    shutil.copy(str(server), str(copy))
    strip(copy)
    if not sections:
        drop_section_headers(copy)
    with Started([copy, SCRIPT], env=env) as process:
        read(process)
