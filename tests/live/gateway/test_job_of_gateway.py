# SPDX-License-Identifier: GPL-3.0-or-later
"""The merged stacks of a whole job in `probing serve`: /v1/job, and its panel in Chromium."""
import contextlib
import json
import os
import pathlib
import tempfile
import urllib.parse

import pytest

import jobs
import simulated
import support
import web_page
from gateway_client import Gateway, wait_until
from web_page import Page

PYTHON = "/usr/bin/python3"
HOSTILE = "<img src=x onerror=alert(1)>"
# Rank 1 is in another function than the others, whose name is no name.
SOURCE = """
import sys, threading, time
def wait(rank):
    print("ready", flush=True)
    time.sleep(1000)
def other(rank):
    print("ready", flush=True)
    time.sleep(1000)
name = %r
other.__code__ = other.__code__.replace(co_name=name, **({"co_qualname": name} if hasattr(other.__code__, "co_qualname") else {}))
def train(rank):
    (other if rank == 1 else wait)(rank)
train(int(sys.argv[1]))
""" % HOSTILE
COUNT = 4
HERE = "127" + jobs.ADDRESS[2:]


def job_of(count, port, users=(), source=jobs.RANK, **variables):
    """Ranks of a job of their own: others of this file run meanwhile."""
    return jobs.ranks(PYTHON, count, users, source, MASTER_PORT=str(port), **variables)


def name_of(port):
    return "%s:%d" % (jobs.ADDRESS, port)


@pytest.fixture(scope="module")
def ranks():
    # Of another user, whose function has that name, if we are root.
    users = [] if os.getuid() else [2003] * COUNT
    with job_of(COUNT, 29500, users, SOURCE) as started:
        yield started


@pytest.fixture(scope="module")
def pids(ranks):
    return [rank.pid for rank in ranks]


@pytest.fixture(scope="module")
def everything():
    """It serves all processes, so other jobs may be there, too."""
    with Gateway() as running:
        yield running


def nodes(stacks):
    """All calls of a tree, from the outermost."""
    for node in stacks:
        yield node
        yield from nodes(node["children"])


def ends(job):
    """Ranks by the call that their stacks end in."""
    return {tuple(node["ends"]): node["name"].split("  ")[0] for node in nodes(job["stacks"]) if node["ends"]}


def test_a_job_by_one_of_its_ranks(everything, pids):
    answer = everything.ask("/v1/job?target=%d" % pids[2])
    assert answer.status == 200, answer
    job = answer.json
    assert job["job"] == "torch " + name_of(29500) and job["world_size"] == COUNT and job["bundle"] is None
    assert [(one["rank"], one["pid"], one["tid"], one["unread"]) for one in job["ranks"]] == \
        [(rank, pid, pid, None) for rank, pid in enumerate(pids)]
    [main] = job["stacks"]
    assert (main["name"], main["ranks"]) == ("MainThread", [0, 1, 2, 3])
    assert ends(job) == {(1,): HOSTILE, (0, 2, 3): "wait"}
    # Groups of few ranks come first.
    split = next(node for node in nodes(job["stacks"]) if len(node["children"]) > 1)
    assert split["name"].startswith("train  ") and [child["ranks"] for child in split["children"]] == [[1], [0, 2, 3]]
    assert job["unread"] == job["unanswered"] == []
    assert "sleep" in next(node for node in nodes(job["stacks"]) if node["ends"] == [1])["waits_for"]
    native = everything.ask("/v1/job?target=%d&native=1&all=1" % pids[2]).json
    assert len(list(nodes(native["stacks"]))) > len(list(nodes(job["stacks"])))


def test_only_ranks_that_are_served(pids):
    with Gateway(pids[1], pids[2]) as gateway:
        for path in ("/v1/job", "/v1/job?target=%d" % pids[1]):
            job = gateway.ask(path).json
            assert [one["pid"] for one in job["ranks"]] == [pids[1], pids[2]], job
            assert ends(job) == {(1,): HOSTILE, (2,): "wait"}
        other = gateway.ask("/v1/job?target=%d" % pids[0])
        assert other.status == 404 and other.error["code"] == "no_process"


def test_what_is_no_rank_tells_of_no_job(ranks, everything):
    with job_of(1, 29501, RANK="", WORLD_SIZE="") as [stranger]:
        with Gateway(stranger.pid) as gateway:
            answer = gateway.ask("/v1/job")
            assert answer.status >= 400, answer
            assert answer.error["message"] == "no target is a rank of a distributed job"
            # A client that may read one process learns nothing of the others.
            assert jobs.ADDRESS not in answer.text and not any(str(rank.pid) in answer.text for rank in ranks)
        answer = everything.ask("/v1/job?target=%d" % stranger.pid)
        assert answer.status >= 400 and "no job on this machine is '%d'" % stranger.pid in answer.error["message"]


def test_a_rank_that_has_ended():
    # An address of this machine: all ranks are here.
    with job_of(3, 29502, MASTER_ADDR=HERE) as ranks, Gateway() as gateway:
        ranks[1].kill()
        job = gateway.ask("/v1/job?target=%d" % ranks[0].pid).json
        assert job["unread"] == [1]
        assert [(one["rank"], one["unread"]) for one in job["ranks"]] == \
            [(0, None), (1, "no process has this rank"), (2, None)]
        assert ends(job) == {(0, 2): "step"}


def test_a_job_that_was_saved(tmp_path):
    files = [tmp_path / name for name in ("one.probing", "-two.probing")]
    with job_of(2, 29503):
        for file in files:
            jobs.cluster("cluster", "hang", name_of(29503), "--save=%s" % file)
    with Gateway(files[0]) as gateway:
        for path in ("/v1/job", "/v1/job?target=f2"):
            job = gateway.ask(path).json
            assert job["bundle"] == str(files[0]) and ends(job) == {(0, 1): "step"}, job
        assert gateway.ask("/v1/job?target=f3").status == 404
    with Gateway(*files) as gateway:
        answer = gateway.ask("/v1/job")
        assert answer.status == 400 and answer.error["hint"] == "choose one by a rank: target=f2 or target=f3", answer
        assert gateway.ask("/v1/job?target=f4").json["bundle"] == str(files[1])
    # One rank of it is one process.
    with Gateway("%s/1" % files[0]) as gateway:
        answer = gateway.ask("/v1/job?target=f1")
        assert answer.status == 404 and answer.error["message"] == "target 'f1' is no rank of a job"
        assert gateway.ask("/v1/job").error["message"] == "no rank of a job is served here"


@pytest.mark.parametrize("target", [
    "--hosts=attacker.example", "--help", "-a", "slurm:1", "FILE", "../FILE", "1 --all", "10.9.", "0", "'", "4242\0", "%00"])
def test_what_a_request_names_is_a_target(everything, tmp_path, pids, target):
    """Never an option, a path, a host, or a part of a job's name."""
    file = tmp_path / "saved.probing"
    file.write_bytes(b"probing-bundle".ljust(1024, b"\0"))
    path = "/v1/job?" + urllib.parse.urlencode({"target": target.replace("FILE", str(file))})
    with Gateway(pids[0]) as one:
        for gateway in (everything, one):
            answer = gateway.ask(path)
            assert answer.status in (400, 404) and answer.error["code"] in ("usage", "no_process"), answer
            assert gateway.ask("/v1/job?target=%d&hosts=a" % pids[0]).error["code"] == "usage"
            assert gateway.ask("/v1/job", token=False).status == 401
            assert gateway.ask("/v1/job", {}).status == 405


def page_test(test):
    for mark in web_page.MARKS:
        test = mark(test)
    return test


USERS = [2001, 2001, 2002]
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def hosts():
    """A job on two hosts, which are users of this machine, and the environment in which ssh reaches them."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        env = jobs.reach_hosts(folder, jobs.SSH.replace("case $2", "echo \"$2\" >>%s/log; case $2" % folder) % "/dev/null")
        (folder / "log").write_text("")
        (folder / "log").chmod(0o666)
        started = stack.enter_context(job_of(3, 29504, USERS))
        yield folder, env, [rank.pid for rank in started]


@needs_root
def test_hundreds_of_hosts_that_do_not_answer(hosts):
    """Each is a warning, which is a header: there is no room for all of them."""
    with Gateway("--hosts", "node2001,node2002,nowhere[1-400]", "--job", name_of(29504), **hosts[1]) as gateway:
        answer = gateway.ask("/v1/job")
        assert answer.status == 200 and [one["pid"] for one in answer.json["ranks"]] == hosts[2], answer
        assert len(answer.json["unanswered"]) == 400
        assert answer.headers["probing-warning"].endswith(" more warnings"), answer.headers


@needs_root
def test_a_job_on_other_machines(hosts):
    folder, env, pids = hosts
    with Gateway("--hosts", "node2001,node2002,nowhere", "--job", name_of(29504), **env) as gateway:
        job = gateway.ask("/v1/job").json
        assert [(one["rank"], one["host"], one["pid"]) for one in job["ranks"]] == \
            list(zip(range(3), ["node2001", "node2001", "node2002"], pids)), job
        assert ends(job) == {(0, 1, 2): "step"}
        assert job["unanswered"] == [{"host": "nowhere", "error": "ssh: Could not resolve hostname nowhere", "waited_s": job["unanswered"][0]["waited_s"]}]
        # A request chooses neither hosts nor a job.
        (folder / "log").write_text("")
        for query in ("hosts=evil", "job=x", "target=--hosts=evil", "bring=/bin/sh", "target=evil"):
            answer = gateway.ask("/v1/job?" + query)
            assert answer.status == 400 or [one["pid"] for one in answer.json["ranks"]] == pids, answer
        assert set((folder / "log").read_text().split()) <= {"node2001", "node2002", "nowhere"}
        if not web_page.browser.COMMAND or not web_page.BUILT:
            return
        with Page(gateway) as page:
            page.show("job")
            page.sees("3 of 3 ranks read", "Host nowhere gave no answer: ssh: Could not resolve hostname nowhere", "3:[0-2]")
            page.push(".class button")
            page.sees("node2001, pid %d" % pids[0])
            assert page.value("document.querySelectorAll('.class a').length") == 0


@page_test
def test_a_job_of_a_thousand_ranks(tmp_path):
    """Simulated with the answers of two real ranks."""
    with job_of(2, 29508, source=simulated.RANK % 30):
        looks = jobs.cluster("cluster", "look", name_of(29508)).stdout
    hosts, _ = simulated.write(str(tmp_path), looks, 1024, 8, late=37, dead=0)
    with Gateway("--hosts", ",".join(hosts), **simulated.environment(str(tmp_path))) as gateway, Page(gateway) as page:
        page.show("job")
        page.sees("1024 of 1024 ranks read", "2 classes of stacks", "1:[37]", "1023:[0-36,38-1023]", "load rank.py", "host00004, pid")
        page.push(".class button", 1)
        page.sees("and 511 more: 511:[513-1023]")
        assert page.value("document.querySelectorAll('.class .ranks li').length") == 512
        assert not page.errors


@needs_root
def test_hosts_are_asked_by_one_request_at_a_time(hosts):
    with Gateway("--hosts", "slow", **hosts[1]) as gateway, contextlib.ExitStack() as stack:
        asked = []
        for _ in range(3):
            asked.append(stack.enter_context(gateway.connect()))
            asked[-1].sendall(b"GET /v1/job HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n" % (
                gateway.host.encode(), gateway.token.encode()))
            assert gateway.ask("/v1").status == 200
            wait_until(gateway.children, "nothing is asked")
        [first] = gateway.children()
        # A leaving client lets the next one in.
        asked[0].close()
        wait_until(lambda: gateway.children() and first not in gateway.children(), "the next one is not asked")
        assert len(gateway.children()) == 1


@pytest.mark.parametrize("words", [
    ["--hosts", "[a-b]"], ["--hosts", "a", "4242"], ["--hosts", "a:9922"], ["--hosts", "a", "--slurm", "1"], ["--job", "x"],
    ["--tree"], ["--namespace", "x"], ["--slurm", "x"]])
def test_what_is_no_job_on_other_machines(words):
    done = jobs.cluster("serve", "--address", "127.0.0.1:0", *words)
    assert done.returncode == 2 and not done.stdout and done.stderr, done


@pytest.fixture(scope="module")
def opened(everything, pids):
    with Page(everything) as page:
        yield page


@pytest.fixture
def page(opened, pids):
    opened.errors.clear()
    opened.show("job", target=pids[0])
    yield opened
    assert not opened.errors, json.dumps(opened.errors)


@page_test
def test_the_panel(page, pids):
    page.sees("4 of 4 ranks read", "2 classes of stacks", "1:[1]", "3:[0,2,3]", "4:[0-3]", HOSTILE, "sleep")
    assert page.value("document.querySelectorAll('#page img').length") == 0
    # The class that differs comes first; a click shows its ranks, and a link of a rank leads to its stack.
    assert page.value("[...document.querySelectorAll('.class button')].map((b) => b.textContent).join(' ')") == "1:[1] 3:[0,2,3]"
    assert page.value("[...document.querySelectorAll('.class h3 a')].map((a) => a.textContent).join()") == "rank 1,rank 0"
    page.push(".class button", 1)
    page.wait("document.querySelectorAll('.class .ranks li').length == 3")
    assert page.value("[...document.querySelectorAll('.class .ranks strong')].map((one) => one.textContent).join()") == "0,2,3"
    page.push(".class .ranks a", 2)
    page.wait(r"/^#.activity.target=%d-\d+&tid=%d$/.test(location.hash)" % (pids[3], pids[3]))
    page.sees("wait", "train")


@page_test
def test_the_tree_is_folded_by_keys(page):
    """From the address to the ranks of a class and to a folded branch, without a mouse."""
    page.press("0")
    page.sees("4:[0-3]")

    def reach(expression):
        for _ in range(100):
            page.press("Tab")
            if page.focused(expression):
                return
        pytest.fail("%s is never reached" % expression)

    reach("e.closest('.class') && e.textContent == '1:[1]'")
    page.press("Enter")
    page.wait("document.querySelectorAll('.class .ranks li').length == 1")
    reach("e.closest('#tree') && e.classList.contains('set') && e.textContent == '4:[0-3]'")
    page.press("Enter")
    page.wait("document.querySelectorAll('#tree .ranks li').length == 4")
    reach("e.closest('#tree') && e.getAttribute('aria-label')?.startsWith('Unfold 3:')")
    lines = page.value("document.querySelectorAll('#tree .call').length")
    page.press("Enter")
    page.wait("document.querySelectorAll('#tree .call').length <= %d" % lines)
    assert page.value("document.activeElement.getAttribute('aria-expanded')") == "false"
    reach("e.type == 'checkbox'")
    page.press(" ")
    page.wait("location.hash.includes('all=1')")
    page.sees("4:[0-3]")


@page_test
def test_ranks_that_could_not_be_read_are_named():
    """They are read again on request, and not before."""
    with contextlib.ExitStack() as stack:
        ranks = stack.enter_context(job_of(4, 29505, MASTER_ADDR=HERE))
        gateway = stack.enter_context(Gateway())
        page = stack.enter_context(Page(gateway))
        page.show("job", target=ranks[0].pid)
        page.sees("4 of 4 ranks read", "1 class of stacks")
        ranks[2].kill()
        ranks[3].kill()
        page.push("#again")
        page.sees("2 of 4 ranks read", "Not read: 2:[2,3] no process has this rank", "2:[0,1]")
        # For a job that may have more machines, the number is unknown.
        other = stack.enter_context(job_of(1, 29507, WORLD_SIZE="3"))
        page.show("job", target=other[0].pid)
        page.sees("1 of 3 ranks read", "Not found: 2:[1,2] no process that was read has these ranks")
        # Its own number of ranks costs nothing.
        liar = stack.enter_context(job_of(1, 29509, WORLD_SIZE="1000000000"))
        page.show("job", target=liar[0].pid)
        page.sees("1 of 1000000000 ranks read", "Not found: 1048575:[1-1048575]")
        assert not page.errors
        page.show("job", target=gateway.process.pid)
        page.sees("no job on this machine is '%d'" % gateway.process.pid)


@page_test
def test_ranks_that_are_files(tmp_path):
    file = tmp_path / "saved.probing"
    with job_of(2, 29506):
        jobs.cluster("cluster", "hang", name_of(29506), "--save", file)
    with Gateway(file) as gateway, Page(gateway) as page:
        page.show("job")
        page.sees("2 of 2 ranks read, saved in %s" % file)
        page.push(".class button")
        page.push(".class .ranks a", 1)
        page.wait("location.hash.startsWith('#/activity?target=f2')")
        page.sees("step")
