# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that lie in a socket of ZeroMQ, between the API server and the engine core."""
import ctypes.util
import re

import pytest

import test_server
from environment import wait_until

pytestmark = pytest.mark.skipif(not ctypes.util.find_library("zmq"), reason="libzmq is not installed")


@pytest.mark.parametrize("place, expected", [
    ("input", "DEALER %s of engine core (%d) has 27 messages that it has not received"),
    ("nowhere", "DEALER %s of API server (%d) is full: 7 messages that it has not passed on")])
def test_the_socket_is_named(tmp_path, place, expected):
    endpoint = "ipc://%s/%s" % (tmp_path, place)
    with test_server.server("full", socket=endpoint) as pids:
        text = re.escape(": the ZeroMQ socket " + expected % (endpoint, pids["api" if place == "nowhere" else "core"]))
        wait_until(lambda: re.search("27 requests of API server .*, which waits for work" + text,
                                     test_server.verdict(pids["core"])[0] or ""))
