# SPDX-License-Identifier: GPL-3.0-or-later
"""Breakpoints, steps and variables on the page, in Chromium: a session of the Debug Adapter Protocol."""
import http.client
import json

import pytest

import support
from gateway_client import Gateway, wait_until
from web_page import MARKS, Page

pytestmark = MARKS
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
PROGRAM = """\
import time


class Order:
    def __init__(self, number):
        self.number = number
        self.items = [number, "x"]


def price(order):
    total = order.number * 2
    total += 1
    return total


def serve():
    number = 0
    while True:
        number += 1
        price(Order(number))
        time.sleep(0.01)


print("ready", flush=True)
serve()
"""
FIRST, SECOND = 11, 12


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "shop.py"
    path.write_text(PROGRAM)
    with support.Program([NEWEST.exe, path], env=NEWEST.env) as running:
        assert running.line() == "ready"
        yield running


def margin(line):
    return "#listing [aria-label=\"Breakpoint in line %d\"]" % line


def stopped_at(page, line):
    page.wait("document.querySelector('#listing [aria-current=step] .margin')?.textContent == '%d'" % line)


def test_breakpoints_steps_and_variables(program):
    with Gateway(program.pid, "--allow-write") as gateway, Page(gateway) as page:
        page.show("debug", target=program.pid)
        page.push("#attach")
        page.sees("It runs.")
        page.wait("[...document.querySelectorAll('#functions button')].some((b) => b.textContent.startsWith('serve '))")
        page.value("[...document.querySelectorAll('#functions button')].find((b) => b.textContent.startsWith('serve ')).click()")
        page.push(margin(FIRST))
        page.sees("Stopped: breakpoint in price")
        stopped_at(page, FIRST)
        # What it has is unfolded from outside.
        page.push('[aria-label="Unfold order"]')
        page.sees("number", "items")
        page.push("#over")
        stopped_at(page, SECOND)
        page.sees("total")
        # With a condition, it stops there again when that is true.
        page.value("document.querySelector('[aria-label=Breakpoints] input').focus()")
        page.type("order.number % 50 == 0")
        page.press("Enter")
        page.push("#resume")
        stopped_at(page, FIRST)
        # What was unfolded was of another stop. The caller's variables are a click away.
        page.wait("document.querySelectorAll('[aria-label=\"Stack and variables\"] .parts > li').length == 1")
        page.value("[...document.querySelectorAll('.stack button')].find((b) => b.textContent.startsWith('serve')).click()")
        page.wait("[...document.querySelectorAll('[aria-label=\"Stack and variables\"] .name')].some((e) => e.textContent == 'number')")
        counted = int(page.value("[...document.querySelectorAll('[aria-label=\"Stack and variables\"] .parts > li')]"
                                 ".find((e) => e.querySelector('.name').textContent == 'number').querySelector('.value').textContent"))
        assert counted % 50 == 0
        # Another click takes it away, and the end of the session leaves nothing.
        page.push(margin(FIRST))
        page.wait("document.querySelectorAll('[aria-label=Breakpoints] li').length == 0")
        page.push("#resume")
        page.sees("It runs.")
        page.push("#detach")
        page.wait("!!document.getElementById('attach')")
        assert not page.errors
        moves(gateway, program)


def moves(gateway, program):
    """It runs, and nothing holds it."""
    seen = set()
    wait_until(lambda: seen.add(gateway.query(program.pid, "SELECT value FROM python.locals WHERE name = 'number'")[0]["value"])
               or len(seen) > 2, "it does not run")
    wait_until(lambda: gateway.ask("/v1/targets").json["targets"][0]["paused"] is None, "it is paused")


def test_a_closed_page_holds_nothing(program):
    with Gateway(program.pid, "--allow-write") as gateway:
        with Page(gateway) as page:
            page.show("debug", target=program.pid)
            page.push("#attach")
            page.push("#hold")
            page.sees("Stopped: pause")
        moves(gateway, program)


def test_only_for_those_who_may(program):
    with Gateway(program.pid) as gateway:
        answer = gateway.ask("/v1/targets/%d/dap" % program.pid, {})
        assert (answer.status, answer.error["code"]) == (403, "permission"), answer


def test_what_is_no_message_ends_the_session(program):
    """And the process runs on."""
    with Gateway(program.pid, "--allow-write") as gateway:
        for text in ("x", "Content-Length: 99999999999\r\n\r\n", "Content-Length: 2\r\n\r\n[]", json.dumps({"seq": 1})):
            connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
            connection.request("POST", "/v1/targets/%d/dap" % program.pid, "{}", {
                "Authorization": "Bearer " + gateway.token, "Content-Type": "application/json"})
            answer = connection.getresponse()
            gateway.ask("/v1/terminals/" + answer.getheader("Probing-Terminal"), {"input": text + "\r\n\r\n" * 200})
            connection.close()
        wait_until(lambda: not gateway.children(), "a session is left")
        moves(gateway, program)
