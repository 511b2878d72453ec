# SPDX-License-Identifier: GPL-3.0-or-later
"""`cluster hang` on faults of real jobs: it names the rank, or says that it is not sure. One job goes
through the faults after which its ranks can continue."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import hung_mount
import support
import training
from environment import wait_until
from rank_job import ABSENT, LATE, LEFT, MISMATCH, MOVES, UNKNOWN, Job, drain


CUDA = """#include <unistd.h>
int cudaStreamSynchronize(const char *file)
{
	while (access(file, F_OK))
		usleep(50000);
	return 0;
}
"""


@pytest.fixture(name="torch", params=training.TORCHES, ids=repr, scope="module")
def fixture_torch(request):
    return request.param


@pytest.fixture(name="job", scope="module")
def fixture_job(tmp_path_factory, torch):
    folder = tmp_path_factory.mktemp("job")
    library = folder / "libcudart.so"
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-xc", "-o", str(library), "-"], input=CUDA,
                   text=True, check=True)
    with contextlib.ExitStack() as stack:
        yield Job(stack, str(folder / "go"), torch=torch, FAKE_CUDA=str(library))


def test_a_rank_that_stalls(job):
    """In each kind of parallelism the stalled rank is named, and no other."""
    for word, late, texts in (
            ("pipeline", 1, ("what rank", "it is at stall ranks.py:")),
            ("sharded", 2, ("never entered all_reduce; it is at stall ranks.py:",)),
            ("later", 1, ("never entered a collective (c10d::", "it is at stall ranks.py:")),
            ("device", 1, ("where the others are, in a wait for the GPU (cudaStreamSynchronize)",
                           "it is at stall ranks.py:")),
            ("parallel", 0, ("never entered a collective (c10d::", "it is at stall ranks.py:"))):
        job.do(word)
        job.hang(LATE, *texts, ranks=[late], confidence="high" if word in ("pipeline", "sharded") else "medium")
        job.release()

    # Rank 2 is in no collective either, but not a member of the group that waits.
    job.do("grouped", 0, 1)
    found = job.hang(LATE, "never entered all_reduce", ranks=[1], confidence="high")
    assert "of ranks 0,1)" in found["evidence"], found
    job.release(0, 1)


def below(nodes, depth=0):
    """All nodes of a tree of stacks, with their depths."""
    for node in nodes:
        yield depth, node
        yield from below(node["children"], depth + 1)


def test_the_tree_of_ranks_that_wait_in_c(job):
    """Their C frames were read to find the collective: in the tree they are placed by their Python frames."""
    def nodes():
        tree = json.loads(job.cluster("dump", "--json", job.name).stdout)
        return [(node["name"], node["ranks"], depth) for depth, node in below(tree["stacks"])]

    found = []

    def is_there():
        found[:] = nodes()
        there = [(name.split("  ")[0].split("::")[0], ranks) for name, ranks, _ in found]
        return {("stall", (0,)), ("Tensor.backward", (1, 2)), ("c10d", (1, 2))} <= {(name, tuple(ranks)) for name, ranks in there}

    job.do("parallel")
    wait_until(is_there, 120)
    assert [(ranks, depth) for name, ranks, depth in found if name.startswith("parallel  ranks.py:")] == [([0, 1, 2], 2)], found
    assert [ranks for name, ranks, _ in found if name.startswith("c10d::")] == [[1, 2]], found
    assert not [name for name, _, _ in found if "libc" in name or "pthread" in name], found
    assert "libc" in job.cluster("dump", "--native", job.name).stdout
    evidence = job.hang(LATE, ranks=[0])["evidence"]
    assert re.search(r"^ranks 1,2 are in a collective \(c10d::.*, by parallel ranks\.py:\d+$", evidence, re.M), evidence
    job.release()


def test_what_keeps_a_rank(job):
    job.do("hold_gil", 2)
    job.do("gather", 0, 1)
    job.hang(LATE, "it is at hold_gil ranks.py:", "holds the GIL", ranks=[2])
    drain(job, 2, b"x")
    job.done()

    job.do("lose_gil", 2)
    job.do("gather", 0, 1)
    job.hang(LATE, "called by lose_gil ranks.py:", "; the GIL is held by thread", ranks=[2])
    drain(job, 2, b"x")
    job.done()

    # Nobody reads the checkpoint: it cannot even be opened.
    job.do("save", 0)
    job.do("meet", 1, 2)
    job.hang(LATE, "never entered barrier", "called by save ranks.py:", "go.fifo0", ranks=[0])
    drain(job, 0)
    job.done()


def test_a_file_system_that_hangs(job):
    with hung_mount.mounted(job.file + ".mount"):
        job.do("save_far", 1)
        job.do("meet", 0, 2)
        job.hang(LATE, "never entered barrier", "it is at save_far ranks.py:", ".mount/checkpoint", ranks=[1])
    job.done()


def test_ranks_that_called_different_things(tmp_path, torch):
    # Rank 2 has received its data, and went on: only the roots show that it is not to blame.
    cases = [("roots", LATE, "or rank 1 has called something else: it is in broadcast", [2], "low")]
    if support.LONG:
        cases += [("forgotten", LATE, "never entered all_reduce", [2], "high"),
                  ("crossed", MISMATCH, "process groups wait for each other", None, "medium"),
                  ("twins", MISMATCH, "process groups wait for each other", None, "medium"),
                  ("around", MISMATCH, "ranks 0-2 wait for each other", [0, 1, 2], "high")]
    for word, verdict, text, ranks, confidence in cases:
        with contextlib.ExitStack() as stack:
            job = Job(stack, str(tmp_path / word), torch=torch)
            job.do(word)
            job.hang(verdict, text, ranks=ranks, confidence=confidence)


def test_training_is_over_and_one_rank_is_left(tmp_path, torch):
    with contextlib.ExitStack() as stack:
        job = Job(stack, str(tmp_path / "go"), torch=torch)
        job.do("upload", 2)
        job.do("leave", 0, 1)
        found = job.hang(LEFT, "ranks 0,1 have no process, and nobody waits for them; rank 2 (pid %d)" % job.pids()[2],
                         "uploader in read_all ranks.py:", ranks=[2], confidence="medium")
        assert str(job.pids()[2]) in found["next"], found


def test_a_rank_that_ended_well_is_not_blamed(tmp_path, torch):
    with contextlib.ExitStack() as stack:
        job = Job(stack, str(tmp_path / "go"), torch=torch)
        job.do("batch")
        job.hang(LATE, "at stall ranks.py:", ranks=[2], confidence="medium")


if support.LONG:
    def test_tensors_of_different_sizes(tmp_path, torch):
        """gloo ends some of the ranks, or lets them wait for ever: then no rank is blamed with certainty."""
        with contextlib.ExitStack() as stack:
            job = Job(stack, str(tmp_path / "go"), torch=torch)
            job.do("shapes")
            done = None

            def is_stuck():
                nonlocal done
                done = job.cluster("hang", job.name, "--json", "--interval", "500ms")
                return done.returncode not in (MOVES, UNKNOWN)

            wait_until(is_stuck, 60)
            print(done.stdout)
            if done.returncode == MISMATCH:
                assert "(1000000,) float32" in json.loads(done.stdout)["sentence"], done
            assert done.returncode == ABSENT or json.loads(done.stdout)["confidence"] != "high", done

    def test_ranks_that_end(tmp_path, torch):
        for word, text in (("leave", "no process"), ("killed", "no process")):
            with contextlib.ExitStack() as stack:
                job = Job(stack, str(tmp_path / word), torch=torch)
                job.do(word, 2)
                if word == "killed":
                    worker = pathlib.Path(job.file + ".worker")
                    wait_until(lambda path=worker: path.exists() and path.read_text().endswith("\n"), 200)
                    os.kill(int(worker.read_text()), signal.SIGKILL)
                # The others wait for us.
                job.hang(LEFT, "rank 2 has " + text, "nobody waits for it; ranks 0,1 are left", ranks=[0, 1])

    def test_sixteen_ranks(tmp_path):
        with contextlib.ExitStack() as stack:
            job = Job(stack, str(tmp_path / "go"), world=16)
            others = [rank for rank in range(16) if rank != 11]
            job.do("gather", *others)
            job.hang(LATE, "rank 11 (pid %d) never entered all_reduce" % job.pids()[11], ranks=[11])
            job.do("gather", 11)
            job.done()
            job.do("sharded")
            job.hang(LATE, "never entered all_reduce; it is at stall ranks.py:", ranks=[2])
            job.release()
            job.do("pipeline")
            job.hang(LATE, "what rank", "it is at stall ranks.py:", ranks=[1])
            job.release()
            job.do("gather", *others)
            os.kill(job.pids()[11], signal.SIGSTOP)
            job.hang(ABSENT, "is stopped by a signal", ranks=[11])
            os.kill(job.pids()[11], signal.SIGKILL)
            job.hang(ABSENT, "no process")
