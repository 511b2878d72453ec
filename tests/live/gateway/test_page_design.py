# SPDX-License-Identifier: GPL-3.0-or-later
"""What the page shows is true and can be read: also after the colours or the width have changed."""
import json

import pytest

import packages
import support
from gateway_client import Gateway
from web_page import MARKS, Page

pytestmark = MARKS

TROUBLE = """
import threading, time
one, two = threading.Lock(), threading.Lock()
both = threading.Barrier(2)
def take(first, second):
    with first:
        both.wait()
        with second:
            pass
takers = [threading.Thread(target=take, args=locks, daemon=True, name="taker") for locks in ((one, two), (two, one))]
for taker in takers:
    taker.start()
print(*(taker.native_id for taker in takers), flush=True)
time.sleep(1000)
"""
# A canvas has a pixel of the colour that texts of the page have now.
READABLE = """[...document.querySelectorAll('canvas')].length && [...document.querySelectorAll('canvas')].every((canvas) => {
    const colour = getComputedStyle(document.body).color.match(/\\d+/g).map(Number);
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4)
        if (data[at + 3] === 255 && colour.every((part, place) => Math.abs(data[at + place] - part) < 8))
            return true;
    return false;
})"""


@pytest.fixture(scope="module")
def shown():
    with support.Program(["/usr/bin/python3", "-c", TROUBLE]) as program:
        takers = program.line().split()
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            yield program, takers, page
            assert not page.errors, json.dumps(page.errors)


def wide(page, width, dark=False):
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
    page.dark(dark)


def test_threads_that_wait_for_each_other_are_two(shown):
    """Threads with the same stack are shown once, but not if they wait for others."""
    program, takers, page = shown
    page.show("activity", target=program.pid)
    page.sees("deadlock", *("waiting for a Lock held by %s" % taker for taker in takers))


def test_names_in_a_sentence_are_code(shown):
    program, _, page = shown
    for panel in ({}, {"target": program.pid}):
        page.show("activity" if panel else "overview", **panel)
        page.sees("wait for each other")
        page.wait("[...document.querySelectorAll('code')].some((code) => code.innerText === 'take')")
        assert "`" not in page.text()


def test_a_long_command_is_one_line(shown):
    program, _, page = shown
    page.show("activity", target=program.pid)
    page.wait("document.querySelector('.argv')?.offsetHeight < 30 && document.querySelector('.argv').title.includes('native_id')")


@pytest.mark.parametrize("panel", ["time", "dashboard"])
def test_charts_follow_colours_and_width(shown, panel):
    program, _, page = shown
    wide(page, 1440)
    page.show(panel, target=program.pid)
    for width, dark in (1440, False), (1024, True), (390, False):
        wide(page, width, dark)
        page.wait(READABLE, "no readable chart at %d, %s" % (width, "dark" if dark else "light"))
        page.wait("document.documentElement.scrollWidth <= %d" % width, "%s is wider than %d" % (panel, width))
    wide(page, 1280)


def test_a_pid_is_never_cut(shown):
    program, _, page = shown
    wide(page, 390)
    page.show("activity", target=program.pid)
    page.wait("document.querySelector('h1 .faint')?.innerText.trim() === '%d'" % program.pid)
    page.wait("(([title, pid]) => pid.right <= title.right && pid.width > 20)(['h1', 'h1 .faint'].map((name) => "
              "document.querySelector(name).getBoundingClientRect()))")
    wide(page, 1280)


def test_an_image_says_its_size_and_why_it_is_not_drawn():
    source = "from PIL import Image\npicture = Image.new('RGB', (6, 4))\nprint('ready', flush=True)\ninput()"
    with support.Program([packages.need("PIL"), "-c", source]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            page.show("inspect", target=program.pid, expression="picture")
            page.sees("mode=RGB size=6x4")
            page.push("#value .fold")
            page.sees("No picture: Pillow")
            assert not page.errors, json.dumps(page.errors)
