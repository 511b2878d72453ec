# SPDX-License-Identifier: GPL-3.0-or-later
"""What panels of the page show of a process: charts over time, long containers, tasks, source in a pause."""
import json

import pytest

import packages
import support
from environment import PROGRAMS
from gateway_client import Gateway
from web_page import MARKS, Page, opened, page  # noqa: F401 (fixtures)

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
pytestmark = MARKS
LOOP = """
import asyncio
many = {number: (number, "x" * 1000) for number in range(300000)}
async def worker(event):
    await event.wait()
async def main():
    event = asyncio.Event()
    workers = [asyncio.ensure_future(worker(event)) for _ in range(7)]
    print("ready", flush=True)
    await asyncio.gather(*workers)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def program():
    with support.Program([NEWEST.exe, "-c", LOOP]) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture(scope="module")
def gateway(program):
    with Gateway(program.pid) as running:
        yield running


OVER_TIME = """SELECT 1700000000 + (value / 2) * 60 AS timestamp, value AS height, 'kind ' || (value % 2) AS kind, 17 AS pid
FROM generate_series(0, 19)"""
LEGEND = "[...document.querySelectorAll('.u-legend .u-label')].map((e) => e.textContent).join()"


def test_a_time_is_along_the_axis_and_numbers_of_processes_are_no_heights(page, program):
    page.show("sql", target=program.pid, sql=OVER_TIME, chart="line")
    page.wait(LEGEND + " === 'timestamp,height'")
    page.value("((e) => { e.value = 'kind'; e.dispatchEvent(new Event('change', {bubbles: true})); })(document.getElementById('series'))")
    page.wait(LEGEND + " === 'timestamp,kind 0,kind 1'")
    # The value below the pointer is a local time.
    page.wait("!!document.querySelector('.u-over')")
    box = page.value("(({x, y, width, height}) => [x + width / 2, y + height / 2])(document.querySelector('.u-over').getBoundingClientRect())")
    shown = "document.querySelector('.u-legend .u-value').textContent"
    local = "[...Array(10).keys()].some((at) => %s === new Date((1.7e9 + at * 60) * 1000).toLocaleString())" % shown
    for place in range(100):
        page.hover(box[0] + place, box[1])
        if page.value(local):
            break
    else:
        pytest.fail("it is no time: %s" % page.value(shown))


def test_a_part_of_the_time_is_enlarged(page, program):
    # Not the chart of another test.
    page.show("overview")
    page.wait("!document.querySelector('.u-over')")
    page.show("sql", target=program.pid, sql=OVER_TIME.replace("19)", "199)"), chart="line")
    page.wait("!!document.querySelector('.u-over')")
    x, y, width, height = page.value("(({x, y, width, height}) => [x, y, width, height])(document.querySelector('.u-over').getBoundingClientRect())")

    def drag(kind, share, **more):
        page.send("Input.dispatchMouseEvent", type=kind, x=x + width * share, y=y + height / 2, button="left", buttons=1, clickCount=1, **more)

    drag("mouseMoved", 0.4)
    drag("mousePressed", 0.4)
    drag("mouseMoved", 0.5)
    drag("mouseMoved", 0.6)
    drag("mouseReleased", 0.6)
    shown = "document.querySelector('.u-legend .u-value').textContent"
    # What is at the left edge now is later than what was there.
    page.hover(x + 2, y + height / 2)
    page.wait("(() => { const at = %s; return [...Array(100).keys()].findIndex((one) => at === new Date((1.7e9 + one * 60) * 1000).toLocaleString()) > 30; })()" % shown)


def test_a_long_container_is_read_in_parts(page, program):
    page.show("inspect", target=program.pid, expression="__main__.many")
    page.push("#value .fold")
    page.sees("[99]", "from [100] on")
    items = "[...document.querySelectorAll('#value .parts .name')].filter((e) => /^\\[\\d+\\]$/.test(e.textContent)).length"
    assert page.value(items) == 100
    page.value("[...document.querySelectorAll('.more')].find((e) => e.textContent.startsWith('Show more')).click()")
    page.wait(items + " === 200")
    page.sees("from [200] on")
    # A long text is cut until it is asked for.
    page.value("[...document.querySelectorAll('#value .parts .fold')][0].click()")
    long = "[...document.querySelectorAll('#value .value')].some((e) => e.textContent.length > 900)"
    page.wait("[...document.querySelectorAll('.more')].some((e) => /show \\d+ characters/.test(e.textContent))")
    assert not page.value(long)


def test_tasks_of_a_loop(page, program):
    page.show("activity", target=program.pid)
    page.sees("8 asyncio tasks", "and 3 more")
    assert page.value("document.querySelectorAll('[aria-label=\"asyncio tasks\"] tbody tr').length") == 2


def test_tasks_stay_while_they_are_read_anew(page, program):
    table = "document.querySelector('[aria-label=\"asyncio tasks\"]')"
    read = "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/query')).length"
    page.show("activity", target=program.pid)
    page.wait("!!" + table)
    page.value("void (globalThis.gone = 0, new MutationObserver(() => { gone += !%s; }).observe(document, { childList: true, subtree: true }))" % table)
    page.wait("%s > %d" % (read, page.value(read) + 1))
    assert page.value("gone") == 0


GREENLETS = """
import gevent, gevent.event
answer = gevent.event.Event()
def ask():
    answer.wait()
asked = [gevent.spawn(ask) for _ in range(6)]
print("ready", flush=True)
gevent.sleep(1000)
"""


def test_greenlets_of_a_hub():
    with support.Program([packages.need("gevent"), "-c", GREENLETS]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            page.show("activity", target=program.pid)
            page.wait("[...document.querySelectorAll('[aria-label=Greenlets] tbody tr')].some((row) => "
                      "row.cells[0].textContent === '6' && row.textContent.includes('ask'))")
            assert not page.errors, json.dumps(page.errors)


def test_source_and_step_keys_in_a_pause():
    with support.Program([NEWEST.exe, PROGRAMS / "web_debugged.py"]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid, "--allow-write") as gateway, Page(gateway) as page:
            page.show("debug", target=program.pid)
            page.wait("!!document.getElementById('hold') && !document.getElementById('hold').disabled")
            page.press("F6")
            page.sees("Paused by this page")
            current = "document.querySelector('#listing [aria-current]')?.textContent"
            page.wait(current)
            lines = (PROGRAMS / "web_debugged.py").read_text().split("\n")
            for key in ("F11", "F10"):
                place = "document.querySelector('#place .place')?.textContent"
                before = page.value(place)
                page.press(key)
                page.wait("%s && %s !== %s && !document.getElementById('step').disabled" % (place, place, json.dumps(before)))
                line = page.value("Number(/:(\\d+)$/.exec(document.querySelector('#place .place').textContent)[1])")
                page.wait("%s === %s" % (current, json.dumps("%d%s" % (line, lines[line - 1]))))
            page.press("F5")
            page.sees("ran again after")
            assert not page.errors
