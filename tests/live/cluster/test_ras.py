# SPDX-License-Identifier: GPL-3.0-or-later
"""Data of NCCL's RAS service: hosts, and evidence for verdicts. Only its protocol is real here: a socket
that answers like NCCL 2.28.7."""
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading

import pytest

import jobs
import support

PYTHON = "/usr/bin/python3"
OK, FAILED, UNSUPPORTED, ABSENT, LATE, DEVICE = 0, 1, 3, 11, 13, 15
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$2" >>"$LOG"
exec sh -c "$3"
"""


def answer(ranks, missing):
    """The table of RAS, as far as it matters."""
    def entry(rank, host, **more):
        return dict({"rank": rank, "host": host, "pid": 100 + rank, "cuda_dev": 0, "nvml_dev": 0}, **more)
    return json.dumps({
        "nccl_version": "2.28.7", "communicators_count": 2, "communicators": [
            {"hash": "0x1", "size": 4, "ranks": [entry(*each) for each in ranks],
             "missing_ranks": [entry(*each, status={"considered_dead": True}) for each in missing]},
            {"hash": "0x2", "size": 1, "ranks": [entry(0, "127.0.0.2")], "missing_ranks": []}],
        "ras": {"timeouts_count": 0}}, indent=2)


@pytest.fixture(name="ras")
def fixture_ras():
    """Starts a service that sends a text to each client, one after the other, and gives its address and its requests."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked, threads = [], []

        def start(*texts):
            def run():
                for text in texts:
                    client, _ = server.accept()
                    with client, client.makefile("rw") as file:
                        for line in file:
                            asked.append(line)
                            if line == "VERBOSE STATUS\n":
                                break
                        file.write(text)
            threads.append(threading.Thread(target=run))
            threads[-1].start()
            return "--ras=127.0.0.1:%d" % server.getsockname()[1]

        yield start, asked
        for thread in threads:
            thread.join(60)


def with_ssh(folder):
    """The environment of a command whose ssh is a file in this folder."""
    path = pathlib.Path(folder, "ssh")
    path.write_text(SSH)
    path.chmod(0o755)
    return dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]), LOG=folder + "/log",
                PROBING_REMOTE_PROGRAM=str(support.BINARY))


def test_hosts_of_ras(ras):
    start, asked = ras
    table = answer([(0, "127.0.0.1"), (1, "127.0.0.1"), (2, "127.0.0.2")], [(3, "127.0.0.3")])
    with tempfile.TemporaryDirectory() as folder, jobs.ranks(PYTHON, 1) as ranks:
        env = with_ssh(folder)
        option = start("SERVER PROTOCOL 2\nOK\n" + table + "\n")
        done = jobs.cluster("cluster", "nodes", "--json", option, jobs.ADDRESS, env=env)
        assert done.returncode == OK, done
        assert json.loads(done.stdout)[0]["ranks"][0]["pid"] == ranks[0].pid
        assert asked == ["CLIENT PROTOCOL 2\n", "SET FORMAT json\n", "VERBOSE STATUS\n"]
        found = sorted(pathlib.Path(folder, "log").read_text().split())
        assert found == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]

        # Any process may own the port: only addresses of hosts get to ssh.
        os.unlink(folder + "/log")
        odd = answer([(0, "-oProxyCommand=x"), (1, "a b;c"), (2, "unknown"), (3, "")], []).replace(
            "127.0.0.2", "127.0.0.9")
        jobs.cluster("cluster", "nodes", start("OK\n" + odd), jobs.ADDRESS, env=env)
        assert pathlib.Path(folder, "log").read_text().split() == ["127.0.0.9"]


def test_a_profile_of_hosts_of_ras(ras):
    start, _ = ras
    table = answer([(0, "127.0.0.1"), (1, "127.0.0.1")], []).replace("127.0.0.2", "127.0.0.1")
    with tempfile.TemporaryDirectory() as folder, jobs.ranks(PYTHON, 2) as ranks:
        env = with_ssh(folder)
        done = jobs.cluster("cluster", "perf", start("OK\n" + table), "--duration", "500ms", "--json", jobs.ADDRESS, env=env)
        assert done.returncode == OK, done
        assert [(one["pid"], one["command"]) for one in json.loads(done.stdout)["processes"]] == [
            (each.pid, "rank %d (127.0.0.1)" % rank) for rank, each in enumerate(ranks)]
        assert pathlib.Path(folder, "log").read_text().split() == ["127.0.0.1"]


def test_no_hosts(ras):
    start, _ = ras
    done = jobs.cluster("cluster", "hang", start("SERVER PROTOCOL 2\nERROR: Unknown command\nJob summary\n"))
    assert done.returncode == UNSUPPORTED and "does not tell its ranks in JSON" in done.stderr
    done = jobs.cluster("cluster", "hang", start("OK\n{\"communicators\": [5, {\"ranks\": 7}]}"))
    assert done.returncode == FAILED and "names no host" in done.stderr
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    done = jobs.cluster("cluster", "hang", "--ras=127.0.0.1:%d" % port)
    assert done.returncode == FAILED and "cannot ask NCCL's RAS service" in done.stderr


CUDA = """#include <unistd.h>
int cudaStreamSynchronize(void)
{
	for (;;)
		pause();
}
"""
RANK = """
import ctypes, os, sys, time
def load():
    print("ready", flush=True)
    time.sleep(1000)
def wait():
    library = ctypes.CDLL(os.environ["FAKE_CUDA"])
    print("ready", flush=True)
    library.cudaStreamSynchronize()
wait() if sys.argv[1] != os.environ["LATE"] else load()
"""


def said(pids, counts, missing=(), size=3):
    """Of one communicator: how many times each rank has launched AllReduce."""
    def entry(rank, **more):
        return dict({"rank": rank, "host": "127.0.0.1", "pid": pids[rank], "cuda_dev": rank, "nvml_dev": rank}, **more)
    return "SERVER PROTOCOL 2\nOK\n" + json.dumps({"nccl_version": "2.29.1", "communicators": [{
        "hash": "0xae94", "secondary_hash": "0x1:0x2", "size": size,
        "ranks": [entry(rank, status={"init_state": 0, "async_error": 0}, collective_counts={
            "Broadcast": 1, "AllReduce": counts[rank]}) for rank in range(3) if rank not in missing],
        "missing_ranks": [entry(rank, status={"unresponsive": True, "considered_dead": False}) for rank in missing]}]})


def test_evidence_of_ras(ras):
    start, _ = ras
    with tempfile.TemporaryDirectory() as folder:
        path, library = pathlib.Path(folder, "ssh"), os.path.join(folder, "libcudart.so")
        path.write_text(SSH)
        path.chmod(0o755)
        subprocess.run(["cc", "-g", "-shared", "-fPIC", "-xc", "-o", library, "-"], input=CUDA, text=True, check=True)
        env = dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]), LOG=folder + "/log",
                   PROBING_REMOTE_PROGRAM=str(support.BINARY))

        def hang(expected, *texts):
            done = jobs.cluster("cluster", "hang", "--json", "--interval", "400ms", start(*texts), jobs.ADDRESS, env=env)
            assert done.returncode == expected, done
            return json.loads(done.stdout)

        with jobs.ranks(PYTHON, 3, source=RANK, FAKE_CUDA=library, LATE="1") as ranks:
            pids = [rank.pid for rank in ranks]
            # Only the stacks show that rank 1 is late; the counts confirm it, contradict it, or are neutral.
            fewer, equal = said(pids, [57, 56, 57]), said(pids, [57, 57, 57])
            found = hang(LATE, fewer, fewer)
            assert found["ranks"] == [1] and found["confidence"] == "high", found
            assert "NCCL's RAS service: ranks 0,2 have launched AllReduce 57 times, rank 1 56 times in communicator " \
                "0xae94 (3 ranks), unchanged for " in found["evidence"], found
            found = hang(LATE, equal, equal)
            assert found["confidence"] == "low" and "that rank has launched all of them" in found["wrong_if"], found
            assert "in each of 1 communicators all ranks have launched the same collectives\n" in found["evidence"]
            found = hang(LATE, said(pids, [56, 56, 56]), fewer)
            assert found["confidence"] == "medium", found
            assert "in 1 of 1 communicators ranks have launched more meanwhile\n" in found["evidence"]
            # It has not answered a second time.
            done = jobs.cluster("cluster", "hang", start(fewer, "gone"), jobs.ADDRESS, env=env)
            assert done.returncode == LATE and "does not tell its ranks in JSON" in done.stderr, done
            assert "NCCL's RAS" not in done.stdout

        with jobs.ranks(PYTHON, 3, source=RANK, FAKE_CUDA=library, LATE="none") as ranks:
            pids = [rank.pid for rank in ranks]
            fewer, equal = said(pids, [57, 57, 55]), said(pids, [57, 57, 57])
            assert hang(DEVICE, equal, equal)["ranks"] == []
            found = hang(LATE, fewer, fewer)
            assert found["ranks"] == [2] and found["confidence"] == "medium", found
            assert found["sentence"].startswith(
                "ranks 0,1 have launched AllReduce 57 times, rank 2 55 times in communicator 0xae94 (3 ranks); rank 2 ")
            lost = said(pids, [57, 57, 57], missing=[2])
            found = hang(ABSENT, lost, lost)
            assert found["ranks"] == [2] and found["confidence"] == "medium", found
            assert found["sentence"] == "rank 2 cannot be reached by NCCL's RAS service"
            assert "rank 2 does not answer it in communicator 0xae94 (3 ranks)\n" in found["evidence"]
            # Communicators and processes unknown to all ranks: no rank is blamed.
            odd = said([1, 1, 1], [-5, 2**62, 7], size=10**6).replace("AllReduce", "All\\u001b[31mReduce")
            found = hang(DEVICE, odd, odd)
            assert "\x1b" not in found["evidence"] and "All\\x1b[31mReduce" in found["evidence"], found
