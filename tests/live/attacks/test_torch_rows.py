# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks of another user's process through training data that root reads: invalid rows in its rings,
names for the terminal, files where root writes, made-up ranks of jobs."""
import json
import os
import resource

import pytest

import training
from environment import OK, PROGRAMS
from files_support import (  # noqa: F401 (fixtures)
    USER, folder, needs_root, program, run, theirs, write)
from test_torch_steps import hostile_code

pytestmark = needs_root
EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\r"
MEMORY = 4 << 30  # that the command may have
WAITS = "print('ready', flush=True); input()"


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def ask(*words):
    """The output of root's command: no terminal control characters."""
    done = run(*words, timeout=200, preexec_fn=limited)
    assert done.returncode >= 0, done
    for text in (done.stdout, done.stderr):
        assert not set(text) & set(b"\x1b\x07\r") and "\u202e".encode() not in text, text
    return done


@pytest.fixture(scope="module")
def stranger():
    """Trains, and its rings have rows of chains, times and names that no training has."""
    training.check()
    source = (PROGRAMS / "training" / "steps.py").read_text()
    with program(source, python=training.PYTHON) as process:
        assert ask(process.pid, "config", "torch.profiling=0.001").returncode == OK
        done = ask(process.pid, "eval", hostile_code())
        assert done.returncode == OK, done
        process.send(b"go\n")
        yield process


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_exact(stranger, options):
    done = ask(stranger.pid, "perf", "--torch", "--exact", "--steps", "2", *options)
    assert done.returncode == OK, done
    assert len(done.stdout) < 64 << 20


@pytest.mark.parametrize("ending", [".html", ".trace.json", ".collapsed", ".svg"])
def test_files(stranger, folder, ending):
    path = folder / ("x" + ending)
    done = ask(stranger.pid, "perf", "--torch", "--exact", "--steps", "2", "-o", path)
    assert done.returncode == OK, done
    written = path.read_bytes()
    assert b"\x1b" not in written and path.stat().st_uid == 0 and len(written) < 256 << 20


def test_a_link_in_place_of_the_file(stranger, folder, theirs):
    secret = write(folder / "secret", b"of root", 0o600)
    link = theirs / "x.html"
    os.symlink(secret, link)
    os.lchown(link, USER, USER)
    done = ask(stranger.pid, "perf", "--torch", "--exact", "--steps", "2", "-o", link)
    assert done.returncode != OK and secret.read_bytes() == b"of root", done


@pytest.mark.parametrize("table", ["torch.overhead", "python.torch_trace", "python.torch_step_timing",
                                   "python.torch_gpu", "python.comm_collective", "comm_metrics"])
def test_tables(stranger, table):
    done = ask(stranger.pid, "query", "SELECT * FROM %s LIMIT 30000" % table)
    assert done.returncode == OK or "nothing records" in done.stderr.decode(), done


def test_ranks_that_are_made_up():
    """A job of another user is not mixed with root's, and names are harmless."""
    variables = {"RANK": "0", "WORLD_SIZE": "1000000", "LOCAL_RANK": "-5", "LOCAL_WORLD_SIZE": "99999",
                 "MASTER_ADDR": "127.0.0.1" + EVIL, "MASTER_PORT": EVIL}
    with program(WAITS, env=dict(os.environ, **variables)) as one, \
            program(WAITS, env=dict(os.environ, **variables)) as other, \
            program(WAITS, env=dict(os.environ, **variables), user=0, group=0) as own:
        text = ask("list", "--job").stdout.decode()
        assert "uid %d" % USER in text and len(text) < 1 << 20
        found = ask("list", "--job", "--json")
        assert found.returncode == OK, found
        of = {pid: job for job in json.loads(found.stdout) for pid in
              [each["pid"] for each in job["processes"]]}
        assert of[own.pid]["uid"] == 0 and len(of[own.pid]["processes"]) == 1
        # Two that claim the same rank: the first has it.
        mine = {one.pid, other.pid} & set(of)
        assert len(mine) == 1 and of[mine.pop()]["uid"] == USER
