# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel Time: what was recorded and seen on one time line, and the flame graph of an interval of it."""
import json
import time

import pytest

import support
from gateway_client import Gateway, wait_until
from web_page import MARKS, Page

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
pytestmark = MARKS
SOURCE = """
import time
print("ready", flush=True)
def spin():
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
while True:
    spin()
    time.sleep(0.05)
"""


@pytest.fixture
def program():
    with support.Program([NEWEST.exe, "-c", SOURCE]) as running:
        assert running.line() == "ready"
        yield running


def test_the_last_minutes_are_kept_on_request(program):
    with Gateway(program.pid) as gateway:
        path = "/v1/targets/%d/recent" % program.pid
        none = gateway.ask(path)
        assert (none.status, none.error["code"]) == (404, "not_found"), none
        assert gateway.ask(path.replace("recent", "recorders")).json == {"recorders": []}
        made = gateway.ask("/v1/targets/%d/profiles" % program.pid, {"keep": 60})
        assert made.status == 201 and made.json["state"] == "running"
        wait_until(lambda: gateway.ask(path).status == 200, "nothing is kept")
        [recorder] = gateway.ask(path.replace("recent", "recorders")).json["recorders"]
        assert recorder["running"] and recorder["pid"] in gateway.children()
        shown = gateway.ask(path)
        assert shown.body.startswith(b"<!DOCTYPE html>") and shown.headers["content-security-policy"].startswith("sandbox")
        assert gateway.ask("/v1/profiles/%s/stop" % made.json["id"], {}).status == 200
        wait_until(lambda: gateway.ask("/v1/profiles").json["profiles"][0]["state"] == "finished", "it does not stop")
        assert gateway.ask("/v1/targets/%d/profiles" % program.pid, {"keep": 5}).status == 400


TRACK = "document.querySelector('.track[aria-label=\"Processor (of one)\"] .u-over')"


def test_an_interval_is_dragged(program):
    with Gateway(program.pid) as gateway, Page(gateway) as page:
        page.show("time", target=program.pid, span=60)
        page.sees("No recorder keeps", "Memory (MB)", "Threads that wait for the GIL")
        page.push("#keep")
        page.wait("!!document.querySelector('iframe')")
        # Two readings make a rate.
        page.wait("document.querySelectorAll('.track[aria-label=\"Processor (of one)\"] .u-legend tr').length === 3")
        page.wait("!!" + TRACK)
        before = time.time()
        page.value(TRACK + ".scrollIntoView({block: 'center'})")
        x, y, width, height = page.value("(({x, y, width, height}) => [x, y, width, height])(%s.getBoundingClientRect())" % TRACK)
        for kind, share in (("mouseMoved", 0.5), ("mousePressed", 0.5), ("mouseMoved", 0.6), ("mouseMoved", 0.75), ("mouseReleased", 0.75)):
            page.send("Input.dispatchMouseEvent", type=kind, x=x + width * share, y=y + height / 2, button="left", buttons=1, clickCount=1)
        page.wait("location.hash.includes('from=')")
        first, last = (float(page.value("new URLSearchParams(location.hash.split('?')[1]).get(%s)" % json.dumps(name))) for name in ("from", "to"))
        # The minute ends now: the middle of the line is half a minute ago.
        assert 14 < last - first < 16 and abs(first - (before - 30)) < 5
        page.wait("document.querySelector('iframe').src.includes('#at=%.3f-%.3f')" % (first, last))
        assert not page.errors, page.errors
