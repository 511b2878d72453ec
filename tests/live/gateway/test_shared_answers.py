# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that ask for the same at the same time share one reading."""
import threading
import time

import pytest

import support
from gateway_client import Gateway, wait_until

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]


@pytest.fixture
def program():
    with support.Program([NEWEST.exe, "-c", "print('ready', flush=True); input()"]) as running:
        assert running.line() == "ready"
        yield running


@pytest.mark.parametrize("path, mark", [("/metrics", "probing_collect_duration_seconds"), ("/v1/targets", '"pid"')])
def test_many_clients_share_one_reading(program, path, mark):
    answers, start = [], threading.Barrier(12)

    def ask():
        start.wait()
        answers.append(gateway.ask(path))

    with Gateway(program.pid) as gateway:
        clients = [threading.Thread(target=ask) for _ in range(12)]
        for client in clients:
            client.start()
        most = 0
        while any(client.is_alive() for client in clients):
            most = max(most, len(gateway.children()))
            time.sleep(0.001)
        assert len(answers) == 12 and all(answer.status == 200 and mark in answer.text for answer in answers)
        # How long the reading took is a part of it.
        assert len({answer.text for answer in answers}) == 1 and most <= 1
        # It is read anew after a moment.
        first = answers[0].text
        if path == "/metrics":
            wait_until(lambda: gateway.ask(path).text != first, "it is never read anew")


def test_a_client_that_leaves_while_others_wait(program):
    """Whoever waits for its answer gets one."""
    with Gateway(program.pid) as gateway:
        with gateway.connect() as leaving:
            leaving.sendall(b"GET /metrics HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n" % (
                gateway.host.encode(), gateway.token.encode()))
            wait_until(gateway.children, "nothing is read")
        assert "probing_up" in gateway.ask("/metrics").text


def test_a_target_that_has_ended_is_told(program):
    with Gateway(program.pid) as gateway:
        assert not gateway.ask("/v1/targets").json["targets"][0]["ended"]
        program.kill()
        wait_until(lambda: gateway.ask("/v1/targets").json["targets"][0]["ended"], "it is not told")
