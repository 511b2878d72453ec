# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing cluster perf --hosts`: each host samples its ranks, and their recordings become one."""
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile

import pytest

import browser
import jobs
import support

PYTHON = "/usr/bin/python3"
OK, FAILED, USAGE = 0, 1, 2
USERS = [2001, 2001, 2002]
# Rank 1 works where the others wait.
SOURCE = """
import sys, time
def work(number):
    while True:
        sum(range(2000))
def idle(number):
    while True:
        time.sleep(0.01)
def train(number):
    print("ready", flush=True)
    (work if number == 1 else idle)(number)
train(int(sys.argv[1]))
"""
RELAYS = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$2" >>"$LOG"
case $2 in
empty) exit 0;;
esac
exec sh -c "$3"
"""
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def job():
    """Ranks of two hosts, and the environment in which these are reached."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "odd").write_text("no recording")
        # Each host has its own temporary files, which have to go away.
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o1777)
        env = dict(jobs.reach_hosts(folder, jobs.SSH % (folder / "odd")), TMPDIR=str(folder / "tmp"))
        ranks = stack.enter_context(jobs.ranks(PYTHON, 3, USERS, SOURCE))
        yield folder, env, [rank.pid for rank in ranks]


def perf(env, *words):
    return jobs.cluster("cluster", "perf", "--duration", "2s", jobs.ADDRESS, *words, env=env)


def of(file, *words):
    return json.loads(subprocess.run([support.BINARY, str(file), *words], capture_output=True, check=True, text=True).stdout)


def test_one_profile_of_two_hosts(job, tmp_path):
    folder, env, pids = job
    file = tmp_path / "all.profile"
    done = perf(env, "--hosts", "node2001,node2002,node2003,odd,nowhere", "-o", file)
    assert done.returncode == OK, done
    # Missing answers of a host are reported; a host without a rank is not worth a message.
    assert "odd: its recording cannot be read: " in done.stderr and "Could not resolve hostname nowhere" in done.stderr
    assert "node2003" not in done.stderr and not list((folder / "tmp").iterdir())
    # The rank that behaves differently, and its functions.
    assert "\nrank 1 (node2001) differs most: " in done.stdout, done
    assert "work" in done.stdout.split("differs most")[1], done
    names = ["rank 0 (node2001)", "rank 1 (node2001)", "rank 2 (node2002)"]
    rows = of(file, "query", "-f", "json", "SELECT pid, command, python FROM profile.processes")
    assert [(row["pid"], row["command"]) for row in rows] == list(zip(pids, names)) and all(row["python"] for row in rows)
    told = of(file, "perf", "--json")
    assert (told["odd_rank"]["pid"], told["odd_rank"]["command"]) == (pids[1], names[1])
    assert told["odd_rank"]["functions"][0]["func"] in ("work", "idle")
    # Threads are of their processes, and each process is the outermost frame of its stacks, on a host with one rank too.
    threads = {(thread["pid"], thread["tid"]) for thread in told["threads"]}
    assert threads == {(pid, pid) for pid in pids}
    stacks = tmp_path / "all.collapsed"
    subprocess.run([support.BINARY, file, "perf", "--mode", "wall", "-o", stacks], check=True, capture_output=True)
    found = {tuple(line.rsplit(" ", 1)[0].split(";"))[:1] for line in stacks.read_text().splitlines()}
    assert found == {("%d %s" % pair,) for pair in zip(pids, names)}
    # It is an ordinary recording: sums are those of the parts.
    again = of(file, "perf", "--json", "--mode", "wall")
    assert again["weight_ns"] >= 3 * 1e9 and again["duration_ns"] < 30e9
    assert not list((folder / "tmp").iterdir())


def test_through_relays_and_for_programs(job, tmp_path):
    folder, env, pids = job
    file = tmp_path / "all.profile"
    # Both hosts are this machine, and one asks the other, which has no rank.
    (folder / "tree").mkdir()
    (folder / "tree" / "ssh").write_text(RELAYS)
    (folder / "tree" / "ssh").chmod(0o755)
    relays = dict(env, PATH="%s:%s" % (folder / "tree", os.environ["PATH"]), LOG=str(tmp_path / "log"))
    done = jobs.cluster("cluster", "perf", "--duration", "1s", "--tree", "--hosts", "a,empty", pids[0], "-o", file, env=relays)
    assert done.returncode == OK and not done.stderr, done
    assert (tmp_path / "log").read_text().split() == ["a", "empty"]
    assert [(one["pid"], one["command"]) for one in of(file, "perf", "--json")["processes"]] == \
        [(pids[0], "rank 0 (a)"), (pids[1], "rank 1 (a)")]
    done = perf(env, "--hosts", "node2001,node2002", "--json")
    told = json.loads(done.stdout)
    assert [process["pid"] for process in told["processes"]] == pids and told["odd_rank"]["pid"] == pids[1]


@pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed")
def test_ranks_are_chosen_in_the_flame_graph(job, tmp_path):
    _, env, pids = job
    file = tmp_path / "all.html"
    assert perf(env, "--hosts", "node2001,node2002", "-o", file).returncode == OK
    with browser.Browser() as page:
        page.open(file)
        names = page.value("[...document.querySelectorAll('#processes label')].map((e) => e.textContent.trim())")
        assert [name.split(" ", 1)[1].split(")")[0] for name in names] == \
            ["rank 0 (node2001", "rank 1 (node2001", "rank 2 (node2002"], names
        # All but one are chosen away.
        page.value("[...document.querySelectorAll('#processes label')].filter((e) => !e.textContent.includes('rank 1 '))"
                   ".forEach((e) => e.click())")
        page.wait("document.querySelector('#processes summary').textContent == '1 of 3 processes'")
        assert not page.errors


def test_what_cannot_be_done_says_why(job, tmp_path):
    folder, env, pids = job
    done = perf(env, "--hosts", "nowhere,odd")
    assert done.returncode == FAILED and "none of 2 hosts answered" in done.stderr, done
    done = perf(env, "--hosts", "node2003")
    assert done.returncode == FAILED and "no host has a rank of the job" in done.stderr, done
    done = perf(env, "--hosts", "slow", "--timeout", "500ms")
    assert done.returncode == FAILED and "slow: no answer within " in done.stderr, done
    # Before anything is sampled.
    done = perf(env, "--hosts", "slow", "-o", tmp_path / "all.xyz")
    assert done.returncode == USAGE and "slow" not in done.stderr, done
    done = perf(env, "--hosts", "node2001,a:9922")
    assert done.returncode == USAGE and "'a:9922' is a served process, which sends no recording" in done.stderr, done
    saved = folder / "saved.probing"
    jobs.cluster("cluster", "hang", pids[0], "--save", saved)
    done = jobs.cluster("cluster", "perf", "--hosts", "node2001", saved, env=env)
    assert done.returncode == USAGE and "a profile is of a job that runs" in done.stderr, done


CHANGES = [
    # Hostile contents of a well-formed file from a host.
    "UPDATE threads SET process = 77",
    "UPDATE threads SET cpu_ns = 9223372036854775807",
    "UPDATE recording SET duration_ns = 9223372036854775807",
    "UPDATE recording SET started = 1e300",
    "UPDATE recording SET started = started - 3600",
    "UPDATE recording SET own_cpu_ns = 9223372036854775807",
    "UPDATE processes SET command = char(27) || '[2J'",
    "UPDATE stacks SET parent = 0",
    "UPDATE functions SET kind = 'note', name = char(27) || '[2J'",
    "DELETE FROM chunks",
    "DROP TABLE waits",
]


def test_hosts_that_lie(job, tmp_path):
    """An invalid recording, or impossible values: those of the other hosts are shown, and no control
    characters reach the terminal."""
    folder, env, pids = job
    good, bad = tmp_path / "good.profile", folder / "odd"
    done = perf(env, "--hosts", "node2001", "-o", good)
    assert done.returncode == OK, done
    kept = bad.read_bytes()
    try:
        for change in CHANGES + [None]:
            shutil.copy(good, tmp_path / "bad")
            if change:
                with contextlib.closing(sqlite3.connect(tmp_path / "bad")) as database:
                    database.execute(change)
                    database.commit()
            data = (tmp_path / "bad").read_bytes()
            bad.write_bytes(data if change else data[:len(data) // 2])
            done = jobs.cluster("cluster", "perf", "--duration", "100ms", "--json", "--hosts", "node2002,odd", jobs.ADDRESS, env=env)
            # Either that host is named, or its processes are there.
            assert "\x1b" not in done.stdout + done.stderr and done.returncode in (OK, FAILED), (change, done)
            assert done.returncode == FAILED or pids[2] in [one["pid"] for one in json.loads(done.stdout)["processes"]], (change, done)
            assert done.returncode == OK or "odd: " in done.stderr, (change, done)
            if change and "3600" in change:
                assert "odd: its clock is not that of this machine" in done.stderr and len(json.loads(done.stdout)["processes"]) == 3
    finally:
        bad.write_bytes(kept)
