# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits of a training's processes: for a worker that loads data, for another rank."""
import contextlib
import os
import re
import signal

import pytest

import support
from environment import PROGRAMS, wait_until
from training import PYTHON, check

PROGRAM = PROGRAMS / "training" / "waits.py"


@contextlib.contextmanager
def training(*words):
    """The program, with all the processes that it starts ended at last."""
    check()
    with support.Program([PYTHON, PROGRAM, *words], start_new_session=True) as program:
        try:
            yield program
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


def main_wait(pid):
    return next((thread["waits_for"] or "") for thread in support.dump(pid)["threads"]
                if thread["tid"] == pid)


def test_data_loader_names_the_worker():
    """The worker's own stack has its activity."""
    with training("load", "1") as program:
        assert program.line(timeout=400) == "loaded"
        main = None

        def worker_hangs():
            """It is waited for from its start on."""
            nonlocal main
            found = re.match(r"p?poll: pipe \d+ ← (\d+) \(python3[^)]*\)", main_wait(program.pid))
            if found:
                number = int(found.group(1))
                main = next(each for each in support.dump(number)["threads"] if each["tid"] == number)
            return main and "sleep" in (main["waits_for"] or "")

        wait_until(worker_hangs, 100)
    assert main["frames"][0]["qualname"] == "Hangs.__getitem__"


def test_data_loader_in_the_same_thread():
    with training("load", "0") as program:
        assert program.line(timeout=400) == "loaded"
        wait_until(lambda: "sleep" in main_wait(program.pid), 100)


def test_collective_names_the_call(tmp_path):
    """Gloo waits on a condition in C: the call into torch.distributed has the reason."""
    with training("ranks", str(tmp_path)) as program:
        ranks = dict(program.line(timeout=400).split()[1:] for _ in range(2))
        late, waiting = int(ranks["1"]), int(ranks["0"])
        wait_until(lambda: main_wait(waiting) ==
                   "futex: waiting in torch.distributed.distributed_c10d.all_reduce", 100)
        wait_until(lambda: "sleep" in main_wait(late), 100)
        native = support.dump(waiting, "--native")
    names = [frame["func"] or "" for thread in native["threads"] if thread["tid"] == waiting
             for frame in thread["frames"]]
    assert any(name.startswith("c10d::Work::wait(") for name in names), names
    assert "all_reduce" in names
