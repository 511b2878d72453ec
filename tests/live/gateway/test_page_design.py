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


def test_who_waits_for_whom_is_a_graph(shown):
    program, takers, page = shown
    page.show("activity", target=program.pid)
    said = page.wait("document.querySelector('.waits')?.getAttribute('aria-label')")
    assert sorted(said.split("; ")) == sorted("%s taker waits for %s taker (lock)" % pair for pair in (tuple(takers), tuple(takers[::-1]))), said
    # Both have a box that leads to the thread; nothing else is in it.
    assert sorted(page.value("[...document.querySelectorAll('.waits a')].map((e) => e.getAttribute('href').split('tid=')[1])")) == sorted(takers)
    page.wait("document.querySelectorAll('.waits > path').length === 2")


TASKS = """
import asyncio
async def take(first, second):
    async with first:
        await asyncio.sleep(0)
        async with second:
            pass
async def main():
    one, two = asyncio.Lock(), asyncio.Lock()
    tasks = [asyncio.ensure_future(take(one, two)), asyncio.ensure_future(take(two, one))]
    [task.set_name("taker %d" % number) for number, task in enumerate(tasks, 1)]
    print("ready", flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


def test_which_task_waits_for_which_is_a_graph():
    with support.Program(["/usr/bin/python3", "-c", TASKS]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            page.show("activity", target=program.pid)
            page.wait("document.querySelector('[aria-label=\"Which task waits for which\"] .waits')?.getAttribute('aria-label')"
                      ".split('; ').sort().join('; ') === 'taker 1 waits for taker 2 (lock); taker 2 waits for taker 1 (lock)'")
            assert not page.errors, json.dumps(page.errors)


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


IMAGES = """
from PIL import Image
picture = Image.new("RGB", (6, 4), (10, 20, 30))
picture.putpixel((5, 3), (255, 128, 0))
grey, precise = Image.new("L", (5, 3), 77), Image.new("F", (5, 3), 0.5)
indexes, lazy = Image.new("P", (5, 3), 1), Image.new("RGB", (5, 3))
indexes.putpalette([0, 0, 0, 200, 100, 50])
indexes.load()
unused = Image.new("P", (5, 3), 1)
unused.putpalette([0, 0, 0, 200, 100, 50])
unused.palette.dirty = 1
ink, clear, lab = Image.new("CMYK", (5, 3), (0, 51, 255, 51)), Image.new("LA", (5, 3), (77, 255)), Image.new("LAB", (5, 3))
lazy._im = None
print("ready", flush=True)
input()
"""
PIXEL = "[...document.querySelector('.pixels')?.getContext('2d').getImageData(%d, %d, 1, 1).data ?? []].join() === '%s'"


def test_images_of_pillow():
    with support.Program([packages.need("PIL"), "-c", IMAGES]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            page.show("inspect", target=program.pid, expression="picture")
            page.sees("mode=RGB size=6x4")
            page.push("#value .fold")
            page.sees("4 × 6 × 3 uint8")
            page.wait(PIXEL % (5, 3, "255,128,0,255"))
            page.wait(PIXEL % (4, 3, "10,20,30,255"))
            for name, shape in ("grey", "3 × 5 uint8: mean 77.00"), ("precise", "3 × 5 float32: mean 0.5000"):
                page.show("inspect", target=program.pid, expression=name)
                page.wait("document.querySelector('#value .name')?.textContent === '%s'" % name)
                page.push("#value .fold")
                page.sees(shape)
            colours = {"indexes": ("3 × 5 × 3 uint8", "200,100,50,255"), "ink": ("3 × 5 × 4 uint8", "204,163,0,255"),
                       "clear": ("3 × 5 × 2 uint8", "77,77,77,255")}
            for name, (shape, colour) in colours.items():
                page.show("inspect", target=program.pid, expression=name)
                page.wait("document.querySelector('#value .name')?.textContent === '%s'" % name)
                page.push("#value .fold")
                page.sees(shape)
                page.wait(PIXEL % (4, 2, colour))
            for name, why in ("lab", "only images of the modes"), ("unused", "palette is not loaded yet"), ("lazy", "it is not loaded yet"):
                page.show("inspect", target=program.pid, expression=name)
                page.wait("document.querySelector('#value .name')?.textContent === '%s'" % name)
                page.push("#value .fold")
                page.sees(why)
            assert not page.errors, json.dumps(page.errors)
