# SPDX-License-Identifier: GPL-3.0-or-later
"""wait.roots on planted topologies of processes that wait for each other: the root is the one that was planted."""
import contextlib
import json
import os
import signal
import subprocess

import pytest

import support
import topologies
from environment import wait_until

INNER = {"middle", "last"}  # parts of others
NEEDS_ZMQ = {"zeromq_ipc", "zeromq_tcp"}
EACH = sorted(set(topologies.TOPOLOGIES) - INNER - (set() if topologies.ZMQ else NEEDS_ZMQ))
ALL = support.one_per_version((3, 8))
PLACES = ALL[:1] + ALL[1:][-1:]  # the oldest and the newest


@contextlib.contextmanager
def planted(interpreter, folder, name):
    with support.Program([interpreter.exe, topologies.__file__, str(folder), name], env=interpreter.env,
                         start_new_session=True) as program:
        try:
            wait_until((folder / "root").exists)
            yield program.pid
        finally:
            os.killpg(program.pid, signal.SIGKILL)


def number(folder, name, default):
    return int((folder / name).read_text()) if (folder / name).exists() else default


def roots(pid):
    done = subprocess.run([support.BINARY, "-t", str(pid), "query", "-f", "json", "SELECT * FROM wait.roots"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return json.loads(done.stdout or "[]")


def of_main(pid):
    return next((row for row in roots(pid) if row["tid"] == pid), None)


@pytest.mark.parametrize("interpreter", PLACES, ids=repr)
@pytest.mark.parametrize("name", EACH)
def test_the_root_is_found(interpreter, name, tmp_path):
    with planted(interpreter, tmp_path, name) as pid:
        waiter, root = number(tmp_path, "waiter", pid), number(tmp_path, "root", 0)
        found = []

        def is_right():
            found[:] = [of_main(waiter)]
            return found[0] and found[0]["root_pid"] == root and "root_cause" in (found[0]["root_place"] or "")
        wait_until(is_right)
