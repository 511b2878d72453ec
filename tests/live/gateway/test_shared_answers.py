# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that ask for the same at the same time share one reading."""
import threading
import time

import pytest

import support
from gateway_client import Gateway, wait_until
from test_events_of_gateway import Stream

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


def test_streams_share_one_reading(program):
    """However many pages show a process: its threads are read once for all of them."""
    with Gateway(program.pid) as gateway:
        streams, times, most, over = [Stream(gateway, program.pid, "?every=0.4") for _ in range(10)], [], [0], threading.Event()

        def watch():
            while not over.is_set():
                most[0] = max(most[0], len(gateway.children()))
                time.sleep(0.001)

        def read(stream):
            times.append([stream.event()[1]["timestamp"] for _ in range(8)])

        watcher, readers = threading.Thread(target=watch), [threading.Thread(target=read, args=[stream]) for stream in streams]
        for thread in (watcher, *readers):
            thread.start()
        for reader in readers:
            reader.join()
        over.set()
        watcher.join()
        assert len(times) == 10 and all(each == sorted(set(each)) for each in times)
        # Those that began at another time join the others: one more reading each at most.
        assert most[0] == 1 and len(set().union(*times)) <= 8 + 10, (most, times)


def test_streams_that_ask_for_something_else_get_it(program):
    with Gateway(program.pid) as gateway:
        plain, native = Stream(gateway, program.pid, "?every=0.2"), Stream(gateway, program.pid, "?every=0.2&native=1")
        kinds = [{frame["kind"] for _ in range(3) for thread in stream.event()[1]["threads"] for frame in thread["frames"]}
                 for stream in (plain, native)]
        assert "native" not in kinds[0] and "native" in kinds[1], kinds


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


def test_a_resumed_process_is_not_told_to_be_paused(program):
    """Nor by a list whose reading began before."""
    over, ended = threading.Event(), []
    with Gateway(program.pid, "--allow-write") as gateway:
        def poll():
            while not over.is_set():
                gateway.ask("/v1/targets")

        path = "/v1/targets/%d/" % program.pid
        pollers = [threading.Thread(target=poll) for _ in range(2)]
        for poller in pollers:
            poller.start()
        for _ in range(5):
            with gateway.connect() as pausing:
                pausing.sendall(b"POST %spause HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 12\r\n\r\n"
                                b'{"max": 100}' % (path.encode(), gateway.host.encode(), gateway.token.encode()))
                wait_until(lambda: gateway.ask("/v1/targets").json["targets"][0]["paused"], "it is not paused")
                assert gateway.ask(path + "resume", {}).status == 200
                ended.append(gateway.ask("/v1/targets").json["targets"][0]["paused"])
        over.set()
        for poller in pollers:
            poller.join()
    assert ended == [None] * 5, ended
