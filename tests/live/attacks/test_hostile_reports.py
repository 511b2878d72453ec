# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of jobs by machines that lie, to a daemon that judges: it goes on, and what it says is escaped."""
import contextlib
import http.client
import json
import os

import pytest

from clickhouse_server import free_ports
from environment import wait_until
from gateway_client import Answer
from test_clickhouse import daemon

TOKEN = "h" * 32
PULSE = {"format": 3, "job": "torch 10.1.2.3:29500", "uid": 0, "world_size": 3, "host": "a", "still": 100, "waited": 100,
         "limit": 3, "waits": True, "ranks": [{"rank": 0, "pid": 7}, {"rank": 1, "pid": 8}], "frames": []}
LONG = "x" * 5000


class Judge:
    def __init__(self, stack, folder):
        self.port, = free_ports(1)
        self.folder = folder / "state"
        start = stack.enter_context(daemon(folder, "--watch-jobs", "--listen", "127.0.0.1:%d" % self.port, "--hang", "1s",
                                           "--state", self.folder, command=("node",), PROBING_AUTH_TOKEN=TOKEN))
        self.process, self.log = start(), start.log.read_text
        wait_until(lambda: (self.folder / "reports").is_dir() and self.answers(), 60)

    def answers(self):
        with contextlib.suppress(OSError):
            return self.post(PULSE, token="w" * 32).status == 401

    def post(self, report, token=TOKEN, **more):
        body = report if isinstance(report, bytes) else json.dumps(dict(report, **more)).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", "/v1/jobs", body, {"Authorization": "Bearer " + token})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def files(self):
        return {path.suffix for path in (self.folder / "reports").iterdir()}


@pytest.fixture
def judge(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Judge(stack, tmp_path)


def test_what_is_no_report(judge):
    """It is refused, and nothing of it is kept."""
    for body in (b"", b"[", b"[" * 100000, b"7", b"{}", b'{"host":"a","host":"b"}', json.dumps(dict(PULSE, host="")),
                 dict(PULSE, host=7), dict(PULSE, job=LONG), dict(PULSE, uid="0"), dict(PULSE, ranks={}), dict(PULSE, host=LONG),
                 dict(PULSE, ranks=[0] * 200000)):
        answer = judge.post(body.encode() if isinstance(body, str) else body)
        assert answer.status == 422, (body[:100] if isinstance(body, bytes) else "", answer)
    assert judge.post(b" " * (1 << 21)).status == 413
    look = {key: value for key, value in PULSE.items() if key != "still"}
    assert judge.post(look).json == {"wanted": False}  # nobody has asked for it
    assert judge.post(PULSE, token="wrong" * 8).status == 401
    assert not judge.files(), judge.log()


def test_hosts_that_lie(judge):
    """Wild numbers and names in pulses, and looks that are none: the verdict of an honest host comes, escaped."""
    odd = "\x1b[2J\n'"
    for number, more in enumerate((
            {"still": 1e308, "waited": -1, "limit": 1e308}, {"ranks": [7, None, {"rank": 1 << 62}, {"rank": -5}, {"rank": "1"}]},
            {"world_size": 1 << 62}, {"world_size": -7}, {"uid": -1}, {"uid": 1 << 62}, {"waits": 5, "limit": "a"}, {"format": odd})):
        assert judge.post(PULSE, job="torch lie:%d" % number, host=odd, **more).status == 200
    job = "torch %s:29500" % odd
    wait_until(lambda: judge.post(PULSE, job=job).json["wanted"], 60)
    for host in (odd, "b"):
        judge.post(PULSE, job=job, host=host)
    look = {key: value for key, value in PULSE.items() if key != "still"}
    assert judge.post(look, job=job, host=odd, format=99).status == 200
    assert judge.post(look, job=job, host="b", ranks=[{"rank": 0, "pid": 1, "threads": [{"frames": [1 << 40]}]}]).status == 200
    frame = {"kind": 0, "func": "barrier", "module": "torch.distributed.distributed_c10d", "line": 1}
    ranks = [{"rank": rank, "pid": 7, "movement": 0, "entered": True, "state": "S", "command": odd, "main": 7,
              "threads": [{"tid": 7, "name": odd, "frames": [0]}]} for rank in (0, 1)]
    assert judge.post(look, job=job, ranks=ranks, frames=[frame], span=1).status == 200
    wait_until(lambda: "has hung for " in judge.log(), 60)
    assert "unreachable: all 2 ranks that answered wait in barrier" in judge.log(), judge.log()
    assert "\x1b" not in judge.log() and judge.process.poll() is None
    text = (judge.folder / "jobs.prom")
    wait_until(text.exists, 20)
    assert "\x1b" not in text.read_text() and os.stat(judge.folder / "reports").st_mode & 0o077 == 0
