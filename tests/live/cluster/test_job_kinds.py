# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a rank in the end: threads, locks, children, other ranks (programs/training/rank_kinds.py). None is
wrong with high confidence. $PROBING_MATRIX names a file that gets a line of JSON for each."""
import contextlib
import glob
import json
import os
import socket
import subprocess

import pytest

import support
import training
from environment import PROGRAMS, wait_until
from rank_job import check_signs, end_group

PROGRAM, REPORTS = (PROGRAMS / "training" / name for name in ("rank_kinds.py", "report_kinds.py"))
WORLD = 4

# Case, verdicts, ranks (None: any), texts of the sentence.
KINDS = [
    ("join_thread", ["late"], [2], ["uploader", "stuck rank_kinds.py"]),
    ("queue_get", ["late"], [2], ["reader", "stuck rank_kinds.py"]),
    ("future_result", ["late"], [2], ["stuck rank_kinds.py"]),
    ("plain_lock", ["late"], [2], ["keeper", "stuck rank_kinds.py"]),
    ("child_python", ["late"], [2], ["(child)", "<module> <string>:1"]),
    ("child_pipe", ["late"], [2], ["pipe ", "(sh)"]),
    ("thread_child", ["late"], [2], ["converter", "(child)"]),
    ("pool_stuck", ["late"], [2], ["never entered barrier"]),
    ("executor_self", ["late"], [2], ["executor_self.<locals>.<lambda>"]),
    ("stuck", ["late"], [2], ["never entered barrier", "stuck rank_kinds.py"]),
    ("poll_file", ["late"], [2], ["poll_file rank_kinds.py"]),
    ("retry", ["late"], [2], ["retry rank_kinds.py"]),
    ("file_lock_rank0", ["cycle"], [0, 1, 2, 3], ["wait for rank 0", "barrier"]),
    ("collective_in_thread", ["late"], [2], ["never entered barrier", "stuck rank_kinds.py"]),
    ("other_tag", ["mismatch"], [0, 1], ["tag 7", "tag 8"]),
    ("wrong_source", ["mismatch"], [0, 1], ["receives from rank 2"]),
    ("groups_order", ["mismatch"], None, ["barrier", "group"]),
    ("group_of_some", ["late", "mismatch"], None, []),
    ("exit_thread", ["left"], [2], ["uploader", "stuck rank_kinds.py"]),
    ("exit_one", ["late"], [2], ["stuck rank_kinds.py"]),
    ("stopped", ["absent"], [2], ["stopped by a signal"]),
    ("counted", ["moves"], [], []),
]
# Of report_kinds.py.
REPORTED = [
    ("validate_on_one", ["mismatch"], [0], ["barrier", "all_reduce"]),
    ("uneven_inputs", ["mismatch", "late"], [2], ["barrier"]),
    ("finish_of_logger", ["late"], [0], ["sender", "stuck rank_kinds.py"]),
    ("loader_fork_lock", ["late"], [2], ["waits in DataLoader for worker", "__getitem__ report_kinds.py"]),
    ("dataset_map_pool", ["late"], [2], ["never entered barrier", "dataset_map_pool report_kinds.py"]),
    ("partial_line", ["late"], [2], ["partial_line report_kinds.py", "(sleep)"]),
    ("full_pipe", ["late"], [2], ["full_pipe report_kinds.py", "(child)"]),
    ("broadcast_instead", ["mismatch"], [2], ["broadcast", "all_gather"]),
    ("other_root", ["mismatch", "late"], None, ["broadcast"]),
    ("store_key", ["late"], [2], ["store_key report_kinds.py"]),
    ("receive_never_sent", ["late"], [2], ["stuck rank_kinds.py"]),
    ("finalizer", ["late"], [2], ["stuck rank_kinds.py"]),
    ("full_log", ["late"], [2], ["full_log report_kinds.py"]),
    ("in_signal_handler", ["late"], [2], ["stuck rank_kinds.py"]),
    ("importing", ["late"], [2], ["_module.py"]),
    ("database", ["late"], [2], ["database report_kinds.py"]),
    ("silent_server", ["late"], [2], ["silent_server report_kinds.py"]),
    ("event_loop", ["late"], [2], ["event_loop"]),
    ("full_queue", ["late"], [2], ["full_queue report_kinds.py"]),
    ("lock_of_a_dead", ["late"], [2], ["lock_of_a_dead report_kinds.py"]),
    ("threads_barrier", ["late"], [2], ["threads_barrier report_kinds.py"]),
    ("debugger", ["late"], [2], ["debugger report_kinds.py"]),
    ("regex", ["late"], [2], ["regex report_kinds.py"]),
    ("long_product", ["late"], [2], ["long_product report_kinds.py"]),
    ("monitored", ["late"], [2], ["never entered monitored_barrier", "stuck rank_kinds.py"]),
    ("objects", ["late"], [2], ["never entered all_gather_object", "stuck rank_kinds.py"]),
    ("tensor_and_data", ["late"], [2], ["stuck rank_kinds.py"]),
    ("starved_start", ["late"], [2], ["starved_start report_kinds.py"]),
    ("remote_call", ["late"], [0], ["maybe another rank"]),
]
KINDS += REPORTED
SHORT = ("validate_on_one", "loader_fork_lock", "partial_line", "tensor_and_data", "thread_child", "file_lock_rank0",
         "collective_in_thread", "other_tag", "exit_thread", "counted")


@contextlib.contextmanager
def job(case, file, torch=training.SYSTEM):
    """The pids of its ranks, as soon as they are where they hang."""
    torch.check()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    with contextlib.ExitStack() as stack:
        for rank in range(WORLD):
            env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                       LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD), OMP_NUM_THREADS="1", HOME="/",
                       PYTHONDONTWRITEBYTECODE="1", **torch.env)
            ranks.append(subprocess.Popen([torch.exe, str(REPORTS if case in [kind[0] for kind in REPORTED] else PROGRAM), case,
                                           file], env=env, start_new_session=True,
                                          stdin=subprocess.DEVNULL))
            stack.callback(ranks[-1].wait)
            stack.callback(end_group, ranks[-1].pid)
        wait_until(lambda: len(glob.glob(file + ".[0-9]")) == WORLD, 200)
        yield "127.0.0.1:%d" % port, ranks


def hang(name):
    done = subprocess.run([support.BINARY, "cluster", "hang", name, "--json"], capture_output=True, check=False,
                          timeout=120, text=True)
    return check_signs(json.loads(done.stdout or "{}"))


def judge(case, kinds, file, torch=training.SYSTEM):
    """The verdict, once it is the expected one, or one that is wrong and sure."""
    found = {}
    with job(case, file, torch) as (name, ranks):
        # Ranks that end do so now.
        ended = {"exit_thread": 3, "exit_one": 1}.get(case, 0)
        wait_until(lambda: sum(rank.poll() is not None for rank in ranks) == ended, 60)

        def is_there():
            found.update(hang(name))
            return found.get("verdict") in kinds

        with contextlib.suppress(AssertionError):
            wait_until(is_there, 40)
        found["own"] = ranks[2].pid
    return found


def write(row):
    if os.environ.get("PROBING_MATRIX"):
        with open(os.environ["PROBING_MATRIX"], "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


@pytest.mark.parametrize("torch", [training.SYSTEM, *([training.OTHERS[-1]] if support.LONG else [])], ids=repr)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if support.LONG or kind[0] in SHORT],
                         ids=lambda kind: kind[0])
def test_kind(kind, torch, tmp_path):
    case, kinds, ranks, texts = kind
    found = judge(case, kinds, str(tmp_path / "at"), torch)
    right = found.get("verdict") in kinds and ranks in (None, found["ranks"]) and \
        all(text in found["sentence"] for text in texts)
    write({"fault": case, "torch": repr(torch), "right": right, **found})
    assert right, found


def test_a_guess_is_not_certain(tmp_path):
    """That the only other thread will set the event is plausible, and no more."""
    found = judge("event_of_nobody", ["late"], str(tmp_path / "at"))
    assert found["ranks"] == [2] and "its other thread: " in found["sentence"] and "bystander" in found["sentence"]
    assert found["confidence"] == "medium", found


def test_who_is_called_is_not_certain(tmp_path):
    """A rank that waits for its remote call may wait for one of those that wait for it."""
    found = judge("remote_call", ["late"], str(tmp_path / "at"))
    assert found["confidence"] == "medium" and "maybe another rank" in found["sentence"], found


def test_signs_are_printed(tmp_path):
    with job("stuck", str(tmp_path / "at")) as (name, _):
        wait_until(lambda: hang(name).get("confidence") == "high", 60)
        out = subprocess.run([support.BINARY, "cluster", "hang", name], capture_output=True, check=False, timeout=120,
                             text=True).stdout
    assert "  signs       waiting ranks: rank 0 is in barrier" in out, out
    assert "              own stack: rank 2 was in no collective at any look" in out, out
    assert "              scheduler: rank 2 has slept for " in out, out


def test_next_is_the_last_link(tmp_path):
    """The child that the rank's thread waits for."""
    found = judge("thread_child", ["late"], str(tmp_path / "at"))
    pid = int(found["next"].split()[1])
    assert pid != found["own"], found


def test_a_rank_that_wants_the_gil_is_slow(tmp_path):
    with job("gil_hog", str(tmp_path / "at")) as (name, _):
        done = subprocess.run([support.BINARY, "cluster", "slow", name, "--duration", "5s", "--json"],
                              capture_output=True, check=True, timeout=120, text=True)
        found = json.loads(done.stdout)
    assert found["slow"] == 2 and found["longer"][0]["function"] == "(waits for the GIL)", found


def watch(name, *words):
    return subprocess.Popen([support.BINARY, "cluster", "watch", name, "--hang", "3s", *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_watch_judges_and_saves_a_job_that_hangs(tmp_path):
    with job("stuck", str(tmp_path / "at")) as (name, _):
        with watch(name, "--json", "--save", str(tmp_path / "saved")) as process:
            out, errors = process.communicate(timeout=200)
    found = json.loads(out)
    assert process.returncode == 13 and found["verdict"] == "late" and found["ranks"] == [2], out
    assert "ranks have waited for " in errors and found["saved_ranks"] == WORLD, errors


def test_watch_says_nothing_of_a_job_that_moves_and_ends(tmp_path):
    with job("counted", str(tmp_path / "at")) as (name, ranks):
        with watch(name) as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(15)
            for rank in ranks:
                end_group(rank.pid)
                rank.wait()
            out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (0, "", "")
