# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing TARGET inject -b -a ADDR`, and then that address in a browser."""
import http.client
import os
import re
import signal
import subprocess

import pytest

import browser
import remote
import support
from gateway_client import wait_until

OK, FAILED, USAGE = range(3)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
BUILT = (support.ROOT / "gateway/web/dist/index.html").exists()


@pytest.fixture
def program():
    with support.Target(NEWEST, support.HERE / "programs" / "obeys.py") as running:
        running.line()
        yield running


class Asked:
    def __init__(self, service, path, token=True, **headers):
        connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
        if token:
            headers["Authorization"] = "Bearer " + service.token
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        self.status, self.body = response.status, response.read()
        connection.close()


def gateways(pid):
    """The processes that serve @pid: the server, and the HTTP gateway."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                words = file.read().split(b"\0")
            with open("/proc/%s/stat" % name, encoding="utf-8") as file:
                zombie = file.read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if b"inject" in words and str(pid).encode() in words and not zombie:
            found.append(int(name))
    return found


def test_both_kinds_of_clients_at_one_port(program):
    with remote.Service(program.pid) as service:
        # No gateway is started without a browser; it ends soon after its last client.
        wait_until(lambda: len(gateways(program.pid)) == 1, "something is started")
        for _ in range(3):
            assert Asked(service, "/v1/targets/%d/stacks" % program.pid).status == 200
            assert service.run("eval", "40 + 2").stdout == b"42\n"
        assert Asked(service, "/v1", token=False).status == 401
        assert Asked(service, "/v1", Host="attacker.example").status == 403
        assert Asked(service, "/v1/targets/%d/stacks" % os.getpid()).status == 404
        wait_until(lambda: len(gateways(program.pid)) == 2, "something is left")


def test_it_ends_with_the_process(program):
    with remote.Service(program.pid) as service:
        assert Asked(service, "/v1").status == 200
        program.kill()
        wait_until(lambda: not gateways(program.pid), "something is left")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_server(program, number):
    with remote.Service(program.pid) as service:
        assert Asked(service, "/v1").status == 200
        service.kill(number)
        wait_until(lambda: not gateways(program.pid), "something is left")
        assert program.alive()


def test_it_is_started_again(program):
    with remote.Service(program.pid) as service:
        assert Asked(service, "/v1").status == 200
        wait_until(lambda: len(gateways(program.pid)) == 2, "something is left")
        [answers] = [pid for pid in gateways(program.pid) if pid != service.server]
        os.kill(answers, signal.SIGKILL)
        wait_until(lambda: answers not in gateways(program.pid), "it does not end")
        assert Asked(service, "/v1").status == 200


def test_once_is_for_other_clients(program):
    with remote.Service(program.pid, "--once") as service:
        with service.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % service.address.encode())
            assert not connection.recv(4096).startswith(b"HTTP")
        assert service.run("eval", "40 + 2").stdout == b"42\n"


@pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed")
@pytest.mark.skipif(not BUILT, reason="the page was not built: 'make web' builds it, with npm")
def test_from_injection_to_a_stack_in_a_browser(program):
    """As typed by a user; the address is the printed one, and the port a free one."""
    done = subprocess.run([support.BINARY, str(program.pid), "inject", "-b", "-a", "127.0.0.1:0"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60, check=True)
    told = done.stdout.decode()
    address = re.search(r"served at (\S+)", told)[1]
    token = re.search(r"PROBING_AUTH_TOKEN=(\S+)", told)[1]
    assert "http://%s/?token=%s\n" % (address, token) in told
    try:
        with browser.Browser(origin="http://%s/" % address) as page:
            page.go("http://%s" % address)
            page.value("document.querySelector('input').value = '%s'" % token)
            page.value("document.querySelector('button').click()")
            page.wait("[...document.querySelectorAll('article')].some((a) => "
                      "a.innerText.includes('MainThread') && a.innerText.includes('obeys.py'))")
            assert "#/activity?target=%d" % program.pid in page.value("location.href")
    finally:
        subprocess.run([support.BINARY, str(program.pid), "agent", "stop"], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
    wait_until(lambda: not gateways(program.pid), "something is left")
