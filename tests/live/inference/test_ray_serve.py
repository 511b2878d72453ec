# SPDX-License-Identifier: GPL-3.0-or-later
"""Replicas of Ray Serve that serve nothing, and their healthy twins."""
import contextlib
import json
import os
import re
import shutil
import tempfile

import pytest

import packages
import support
from environment import wait_until
from launched_job import free_port
from test_server import STANDIN, check, probing, rows, server, verdict, why

BLOCKED = r"the event loop of replica m Model \(%(replica)d\) has been blocked for \d+ s by `handle` ray_standin.py:\d+; it has "
STATES = {
    "idle": (None, None), "one": (None, None), "busy": (None, None),
    "blocked": (BLOCKED + "3 requests", "medium"),
    "behind_one": (BLOCKED + "1 request, and 2 others wait", "medium"),
    "none": (r"5 requests of proxy \(%(router)d\) wait for a replica, of which there is none; the oldest is 1 m \d+ s old", "low"),
    "full": (r"5 requests of proxy \(%(router)d\) wait for a slot: all 4 are taken; the oldest is 1 m \d+ s old", "low"),
}


@pytest.mark.parametrize("state", STATES)
def test_replicas(state, monkeypatch):
    # Of what sleeps for less nothing is said.
    monkeypatch.setenv("PROBING_LIMITS", "request=2")
    with server(state, standin=STANDIN.with_name("ray_standin.py")) as pids:
        expected, confidence = STATES[state]
        counts = "SELECT name, count, max_count FROM inference.queues WHERE name = 'running'"
        wait_until(lambda: rows(pids["replica"], counts) == [{"name": "running", "count": {
            "idle": 0, "blocked": 3, "one": 1, "behind_one": 1, "full": 4, "busy": 3, "none": 0}[state], "max_count": 4}])
        if state == "one":
            wait_until(lambda: any((row["idle_seconds"] or 0) > 3 for row in rows(pids["replica"], "SELECT idle_seconds FROM python.threads")))
        if expected is None:
            assert verdict(pids["replica"]) == verdict(pids["router"]) == (None, None)
        for pid in pids.values() if expected else ():
            wait_until(lambda pid=pid: re.fullmatch(expected % pids, verdict(pid)[0] or ""))
            assert verdict(pid)[1] == confidence
        monkeypatch.setenv("PROBING_LIMITS", "request=600,transfer=600")
        assert verdict(pids["replica"]) == (None, None) and why(pids["replica"]) == []
        assert check(pids["replica"], "600s") == (0, "ok")


RAY = packages.FOLDER / "engines" / "ray-2.60.0"
REAL = {
    "healthy": None,
    "full": (r"3 requests of proxy \(PROXY\) wait for a slot: all 2 are taken; the oldest is \d+ s old", "low"),
    "blocked": (r"the event loop of replica app Model \(REPLICA\) has been blocked for \d+ s by `Model.__call__` real_ray_serve.py:\d+; it has "
                "2 requests, and 3 others wait", "medium"),
    "dead": (r"5 requests of proxy \(PROXY\) wait for a replica, of which there is none; the oldest is \d+ s old", "low"),
}


@contextlib.contextmanager
def ray_serve(state):
    folder = tempfile.mkdtemp(prefix="ray")  # has sockets, whose names are short
    env = dict(os.environ, PYTHONPATH=str(RAY))
    command = [packages.PYTHON, STANDIN.with_name("real_ray_serve.py"), state, folder, str(free_port())]
    try:
        with support.Program(command, env=env, start_new_session=True) as program:
            while program.line(timeout=300) != "ready":
                pass
            yield program.pid
            program.send(b"\n")
            while program.line() != "ended":
                pass
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("state", REAL)
def test_ray_itself(state, monkeypatch):
    """Whichever of its processes is asked about: they are children of Ray's own program."""
    if not RAY.exists():
        pytest.skip("no ray-2.60.0 here: 'make test-packages' gets it")
    monkeypatch.setenv("PROBING_LIMITS", "request=3,transfer=3")
    with ray_serve(state) as driver:
        names = {each["part"].split()[0]: each["pid"] for each in json.loads(probing("server", driver, "--json")[1])["processes"] if each["part"]}
        # One that died may not have a successor yet.
        assert set(names) | ({"replica"} if state == "dead" else set()) == {"proxy", "controller", "replica"}
        expected, sure = REAL[state] or (None, None)
        for pid in (driver, *names.values()):
            def is_right(pid=pid):
                found = verdict(pid)
                return found == (None, None) if expected is None else found[0] and re.fullmatch(
                    expected.replace("PROXY", str(names["proxy"])).replace("REPLICA", str(names.get("replica"))), found[0]) and found[1] == sure
            wait_until(is_right)
