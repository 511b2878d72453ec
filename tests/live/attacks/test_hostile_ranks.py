# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks and hosts that lie about collectives and process groups: root's verdict comes, and is escaped."""
import contextlib
import json
import os
import pathlib
import tempfile

import pytest

import jobs
import support
from sockets_support import SYSTEM_PYTHON

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON,
                                reason="needs root, and the system's Python for the other user")
ATTACKER = 2001
ENDLESS = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
data) exec cat /dev/zero;;
errors) yes >&2 & sleep 2; kill $!; exit 1;;
deep) head -c 1000000 /dev/zero | tr '\\0' '['; exit 0;;
esac
shift 2
exec sh -c "$1"
"""
# Names like torch's module, without torch; with unknown groups and arguments.
RANK = r"""
import sys, time, types
module = types.ModuleType("torch.distributed.distributed_c10d")
sys.modules[module.__name__] = module
class Group:
    pass
class tensor:
    def __repr__(self):
        time.sleep(1000)
    shape = "(shape=(\x1b[2J, dtype=\x1b]0;x\x07)"
loop = {}
loop[Group()] = loop
module._pg_group_ranks = {
    Group(): {3: 0, 1: 1}, Group(): {-5: 0, 1 << 70: 1, "a": 2}, Group(): 7, Group(): loop,
    Group(): {i: i for i in range(300000)}}
groups = list(module._pg_group_ranks)
module._pg_names = {groups[4]: "\x1b[31m" * 1000, groups[0]: "\x1b[31mred", groups[1]: 8}
def all_reduce(tensor, group, src, dst):
    print("ready", flush=True)
    time.sleep(1000)
def step(rank):
    call = types.FunctionType(all_reduce.__code__, {
        "__name__": module.__name__, "print": print, "time": time})
    if rank == 3:
        print("ready", flush=True)
        time.sleep(1000)
    call(tensor(), groups[(4, 0, 3)[rank]], 1 << 62, -7)
step(int(sys.argv[1]))
"""


def test_ranks_that_lie():
    with jobs.ranks(SYSTEM_PYTHON, 4, [ATTACKER] * 4, RANK):
        done = jobs.cluster("cluster", "hang", jobs.ADDRESS)
        assert done.returncode in (12, 13, 15, 16), done
        assert "\x1b" not in done.stdout + done.stderr, done
        # One of the groups is valid, with a hostile name.
        assert "\\x1b[31mred of ranks 1,3)" in done.stdout, done
        assert "rank 3 " in done.stdout
        found = jobs.cluster("cluster", "hang", "--json", jobs.ADDRESS)
        assert json.loads(found.stdout)["confidence"] in ("high", "medium", "low")


def test_hosts_that_lie():
    """Calls as no process has them, in an answer that is well formed."""
    with jobs.ranks(SYSTEM_PYTHON, 2) as ranks, tempfile.TemporaryDirectory() as folder:
        looks = json.loads(jobs.cluster("cluster", "look", "--interval", "10ms", jobs.ADDRESS).stdout)
        frame = {"kind": 0, "func": "recv", "module": "torch.distributed.distributed_c10d", "line": 1}
        calls = [
            {"peer": 1 << 40, "group": "\x1b[2J", "members": "0-99999999999999999999", "known": True},
            {"peer": -9, "members": "5-1,,x", "data": "\x1b[2J", "known": 7},
            {"peer": 0, "members": "0-1048576", "group": ["a"], "known": True},
            {"peer": "1", "members": "", "known": True}, [1, 2], 5]
        for call in calls:
            for peer in (None, 0, 1):
                looks["world_size"] = 3
                for rank in looks["ranks"]:
                    rank["call"] = dict(call, peer=peer) if peer is not None and isinstance(call, dict) else call
                    rank["threads"][0]["frames"] = [frame] + rank["threads"][0]["frames"][-1:]
                    rank["movement"], rank["entered"] = 0, True
                file = pathlib.Path(folder, "answer")
                file.write_text(json.dumps(looks))
                ssh = pathlib.Path(folder, "ssh")
                ssh.write_text("#!/bin/sh\ncat %s\n" % file)
                ssh.chmod(0o755)
                env = dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]))
                done = jobs.cluster("cluster", "hang", "--hosts", "a", env=env)
                assert done.returncode in (11, 12, 13, 15, 16) and "\x1b" not in done.stdout, (call, done)
        for number in (-1, 1 << 40, len(looks["frames"])):
            looks["ranks"][0]["threads"][0]["frames"] = [number]
            file.write_text(json.dumps(looks))
            done = jobs.cluster("cluster", "hang", "--hosts", "a", env=env)
            assert done.returncode == 1 and "a frame that is not in the list" in done.stderr, done
        assert ranks[0].pid


def test_hosts_that_never_end():
    """Data without end, lines without end on stderr, brackets without end: each is named."""
    with jobs.ranks(SYSTEM_PYTHON, 1) as ranks, tempfile.TemporaryDirectory() as folder:
        ssh = pathlib.Path(folder, "ssh")
        ssh.write_text(ENDLESS)
        ssh.chmod(0o755)
        env = dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]), PROBING_REMOTE_PROGRAM=str(support.BINARY))
        words = ("--hosts", "data,errors,deep,good", "--timeout", "100s", jobs.ADDRESS)
        done = jobs.cluster("cluster", "nodes", "--json", *words, env=env)
        assert done.returncode == 0, done
        assert json.loads(done.stdout)[0]["ranks"][0]["pid"] == ranks[0].pid
        for host, why in (("data", "the answer is too long"), ("deep", "its answer cannot be understood"), ("errors", "")):
            assert "warning: %s: %s" % (host, why) in done.stderr, done
        assert len(done.stderr) < 20000
        done = jobs.cluster("cluster", "query", "SELECT count(*) FROM global.python.threads", *words, env=env)
        assert "1 of 1 ranks answered: 0\n" in done.stderr and "data: the answer is too long\n" in done.stderr, done


# A process's title, modules and environment are chosen by its user.
INSIDE = r"""
import ctypes, mmap, os, sys, time, types
ctypes.CDLL(None).prctl(15, b"ray::\x1b[2Jx", 0, 0, 0)
class Loop(dict):
    pass
loop = {b"RANK": b"\x1b[2J", b"WORLD_SIZE": b"99999999999999999999", b"x" * 100000: b"y", 7: 8, "RANK": "0",
        b"MASTER_ADDR": b"\x1b[31m'"}
loop[b"LOCAL_RANK"] = loop
os.environ._data = (loop, Loop(loop), 7, None)[int(sys.argv[1]) % 4]
module = types.ModuleType("torch.distributed.distributed_c10d")
sys.modules[module.__name__] = module
class Group:
    __slots__ = ("pointer",)
group = Group()
group.pointer = 1 << 60
module._pg_group_ranks = {group: {number: number for number in range(4)}}
module._pg_names = {}
print("ready", flush=True)
time.sleep(1000)
"""


def test_processes_that_look_like_ranks():
    with contextlib.ExitStack() as stack:
        for number in range(4):
            process = stack.enter_context(support.Program(
                ["setpriv", "--reuid", ATTACKER, "--regid", ATTACKER, "--clear-groups", SYSTEM_PYTHON, "-c", INSIDE,
                 number], cwd="/"))
            assert process.line() == "ready"
        done = jobs.cluster("cluster", "nodes")
        assert done.returncode in (0, 1) and "\x1b" not in done.stdout + done.stderr, done
        assert "Traceback" not in done.stderr and done.returncode >= 0
