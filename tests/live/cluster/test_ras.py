# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts named by NCCL's RAS service. Only its protocol is real here: a socket that answers as NCCL 2.28.7."""
import json
import os
import pathlib
import socket
import tempfile
import threading

import pytest

import jobs
import support

PYTHON = "/usr/bin/python3"
OK, FAILED, UNSUPPORTED = 0, 1, 3
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
    """Starts a service that sends a text to its only client, and gives its address and its requests."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked, threads = [], []

        def start(text):
            def run():
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


def test_hosts_of_ras(ras):
    start, asked = ras
    table = answer([(0, "127.0.0.1"), (1, "127.0.0.1"), (2, "127.0.0.2")], [(3, "127.0.0.3")])
    with tempfile.TemporaryDirectory() as folder, jobs.ranks(PYTHON, 1) as ranks:
        path = pathlib.Path(folder, "ssh")
        path.write_text(SSH)
        path.chmod(0o755)
        env = dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]), LOG=folder + "/log",
                   PROBING_REMOTE_PROGRAM=str(support.BINARY))
        option = start("SERVER PROTOCOL 2\nOK\n" + table + "\n")
        done = jobs.cluster("cluster", "nodes", "--json", option, jobs.ADDRESS, env=env)
        assert done.returncode == OK, done
        assert json.loads(done.stdout)[0]["ranks"][0]["pid"] == ranks[0].pid
        assert asked == ["CLIENT PROTOCOL 2\n", "SET FORMAT json\n", "VERBOSE STATUS\n"]
        found = sorted(pathlib.Path(folder, "log").read_text().split())
        assert found == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]

        # Whoever has the port names what he likes: only addresses of hosts get to ssh.
        os.unlink(folder + "/log")
        odd = answer([(0, "-oProxyCommand=x"), (1, "a b;c"), (2, "unknown"), (3, "")], []).replace(
            "127.0.0.2", "127.0.0.9")
        jobs.cluster("cluster", "nodes", start("OK\n" + odd), jobs.ADDRESS, env=env)
        assert pathlib.Path(folder, "log").read_text().split() == ["127.0.0.9"]


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
