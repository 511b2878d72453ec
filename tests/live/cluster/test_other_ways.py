# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that are reached through the ports where they are served, and hosts that ask other hosts."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

import jobs
import support

PYTHON = "/usr/bin/python3"
OK, USAGE, LATE, UNKNOWN = 0, 2, 13, 16
TOKEN = "0123456789abcdefghij"

# Each host is this machine. A host named "lame" can be read, but connects to no others.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$HOST $2 $3" | tr -d "'" >>"$LOG"
case "$2$3" in
lame*relay*) echo "no relay here" >&2; exit 1;;
dead*) echo "ssh: connect to host $2 port 22: Connection refused" >&2; exit 255;;
esac
HOST=$2 sh -c "$3"
"""


def serve(rank):
    done = subprocess.run([support.BINARY, str(rank.pid), "inject", "--listen", "127.0.0.1:0"],
                          env=dict(os.environ, PROBING_AUTH_TOKEN=TOKEN), capture_output=True, text=True,
                          check=True, stdin=subprocess.DEVNULL)
    return re.search(r"is served at (\S+) until", done.stdout).group(1)


def test_ranks_that_are_served():
    env = dict(os.environ, PROBING_AUTH_TOKEN=TOKEN)
    with jobs.ranks(PYTHON, 3) as ranks:
        hosts = [serve(rank) for rank in ranks]
        pids = [rank.pid for rank in ranks]
        for count in (3, 2):
            words = ("--hosts", ",".join(hosts[:count]))
            done = jobs.cluster("cluster", "nodes", "--json", *words, env=env)
            found = json.loads(done.stdout)[0]["ranks"]
            # Each knows of itself only.
            assert [(rank["host"], rank["pid"]) for rank in found] == \
                list(zip(hosts[:count], pids)) + [(None, None)] * (3 - count), done
        done = jobs.cluster("cluster", "hang", "--hosts", ",".join(hosts), env=env)
        assert done.returncode == UNKNOWN and "rank 2 is at step rank.py:" in done.stdout, done
        done = jobs.cluster("cluster", "query", "--json", "--hosts", ",".join(hosts), "SELECT _addr, _pid, "
                            "func FROM global.python.backtrace WHERE depth = 0 ORDER BY _rank", env=env)
        assert json.loads(done.stdout) == [{"_addr": host, "_pid": pid, "func": "step"}
                                           for host, pid in zip(hosts, pids)], done
        # With the token of one process a client learns nothing of others.
        refused = jobs.cluster("-t", hosts[0], "cluster", "nodes", env=env)
        assert refused.returncode == USAGE and "clients may run only 'cluster own'" in refused.stderr
        wrong = jobs.cluster("cluster", "nodes", "--hosts", hosts[0],
                             env=dict(env, PROBING_AUTH_TOKEN="jihgfedcba9876543210"))
        assert wrong.returncode != OK and hosts[0] in wrong.stderr, wrong


def of_hosts(folder, **variables):
    """An environment with a stand-in for ssh, and the log of its arguments."""
    ssh, log = pathlib.Path(folder, "ssh"), pathlib.Path(folder, "log")
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    return dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]), LOG=str(log), HOST="here", **variables), log


def test_hosts_that_ask_others():
    with tempfile.TemporaryDirectory() as folder, jobs.ranks(PYTHON, 2) as ranks:
        env, log = of_hosts(folder, PROBING_REMOTE_PROGRAM=str(support.BINARY))
        hosts = "a,b,dead1,c,d,e,lame,f,dead2"
        done = jobs.cluster("cluster", "nodes", "--json", "--tree", "--hosts", hosts, jobs.ADDRESS, env=env)
        assert done.returncode == OK, done
        assert [rank["pid"] for rank in json.loads(done.stdout)[0]["ranks"]] == [rank.pid for rank in ranks]
        asked = sorted(tuple(line.split()[:2]) + (line.split()[5],) for line in log.read_text().splitlines())
        assert asked == sorted([
            ("here", "a", "relay"), ("here", "c", "relay"), ("here", "lame", "relay"),
            ("a", "b", "look"), ("a", "dead1", "look"), ("c", "d", "look"), ("c", "e", "look"),
            # If a relay fails, the host is contacted directly.
            ("here", "lame", "look"), ("here", "f", "look"), ("here", "dead2", "look")]), asked
        for host in ("dead1", "dead2"):
            assert "%s: ssh: connect to host %s port 22: Connection refused\n" % (host, host) in done.stderr
        assert done.stderr.count("warning") == 2, done.stderr
        usage = jobs.cluster("cluster", "nodes", "--tree", env=env)
        assert usage.returncode == USAGE and "--tree is for --hosts" in usage.stderr
        usage = jobs.cluster("cluster", "nodes", "--tree", "--hosts", "a,b:9922", env=env)
        assert usage.returncode == USAGE and "'b:9922' is a served process, which asks no others" in usage.stderr

        # Rows and snapshots come the same way.
        log.unlink()
        done = jobs.cluster("cluster", "query", "--json", "--tree", "--hosts", hosts, "SELECT _host, _rank, func FROM "
                            "global.python.backtrace WHERE depth = 0 AND func = 'step' ORDER BY 1, 2", jobs.ADDRESS,
                            env=env)
        assert done.returncode == OK, done
        assert json.loads(done.stdout) == [{"_host": host, "_rank": rank, "func": "step"}
                                           for host in ("a", "b", "c", "d", "e", "f", "lame") for rank in (0, 1)]
        assert "dead1: ssh: connect to host dead1 port 22: Connection refused\n" in done.stderr
        assert " cluster relay --hosts=a,b,dead1 " in log.read_text(), log.read_text()

        log.unlink()
        file = pathlib.Path(folder, "hang.probing")
        done = jobs.cluster("cluster", "hang", "--tree", "--save", file, "--hosts", hosts, jobs.ADDRESS, env=env)
        assert done.returncode == UNKNOWN and "%s: snapshots of 2 of 2 ranks" % file in done.stdout, done
        assert done.stderr.count("Connection refused") == 2, done.stderr
        done = jobs.cluster(file, "query", "-f", "json", "SELECT _rank, value FROM python.locals WHERE name = 'loss' "
                            "ORDER BY 1")
        assert [row["value"] for row in json.loads(done.stdout)] == ["0", "1"]


def test_a_copy_for_hosts_that_ask_others():
    """The relay was brought, and brings itself to the others."""
    with tempfile.TemporaryDirectory() as folder, jobs.ranks(PYTHON, 1) as ranks:
        env, log = of_hosts(folder, TMPDIR=folder, PROBING_REMOTE_PROGRAM="/nonexistent")
        done = jobs.cluster("cluster", "nodes", "--json", "--tree", "--bring", support.BINARY, "--hosts", "a,b,c,d",
                            jobs.ADDRESS, env=env)
        assert done.returncode == OK and not done.stderr, done
        assert json.loads(done.stdout)[0]["ranks"][0]["pid"] == ranks[0].pid
        asked = sorted(tuple(line.split()[:2]) for line in log.read_text().splitlines() if "exec sh" in line)
        assert asked == [("a", "b"), ("c", "d"), ("here", "a"), ("here", "c")], log.read_text()
        assert not list(pathlib.Path(folder).glob("probing.*"))
