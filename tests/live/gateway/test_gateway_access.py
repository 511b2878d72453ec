# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of `probing serve` for everybody: axe-core finds nothing serious, keys are enough, a phone is wide enough."""
import contextlib
import json
import os
import tempfile

import pytest

import jobs
import support
from environment import PROGRAMS
from gateway_client import Gateway
from web_page import MARKS, PANELS, Page

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
AXE = support.ROOT / "gateway" / "web" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = MARKS

# Visible content of each panel before it is judged, and the actions needed for that.
FULL = {
    "overview": ("web_debugged.py rank", None),
    "activity": ("keeper", "[...document.querySelectorAll('.frames button')].find((b) => b.textContent == 'work').click()"),
    "profile": ("Nothing was recorded yet", None),
    "training": ("No module of torch", None),
    "memory": ("Python objects", None),
    "inspect": ("bytearray", None),
    "sql": ("rows in", None),
    "console": ("Run", None),
    "debug": ("keeper", None),
    "time": ("Keep the last ten minutes", None),
    "dashboard": ("Threads by state", None),
    "job": ("Classes: ranks with the same stack", None),
    "server": ("no process of an inference server", None),
}
VALUES = {"inspect": {"expression": "shelf"}, "sql": {"sql": "SELECT name, tid FROM python.threads"}}


@pytest.fixture(scope="module")
def program():
    with support.Program([NEWEST.exe, PROGRAMS / "web_debugged.py"],
                         env=dict(os.environ, RANK="3", WORLD_SIZE="8", MASTER_ADDR=jobs.ADDRESS, MASTER_PORT="29541")) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture(scope="module")
def gateway(program):
    with tempfile.TemporaryDirectory() as state, \
            Gateway(program.pid, "--allow-write", XDG_STATE_HOME=state) as running:
        yield running


# Each width in both colours; the last one is that of a desk.
WINDOWS = [(width, dark) for width in (390, 1024, 1440) for dark in (True, False)]


def look_like(page, width, dark):
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    page.dark(dark)
    page.wait("innerWidth === %d && matchMedia('(prefers-color-scheme: dark)').matches === %s" % (width, json.dumps(dark)))


def fill(page, panel, pid):
    page.show(panel, target=pid, **VALUES.get(panel, {}))
    text, act = FULL[panel]
    page.sees(text)
    if act:
        page.value(act)
        page.sees("number")


def findings(page):
    """Rules that are broken, of any level, with the elements that break them."""
    page.value("void (globalThis.axe || eval.call(globalThis, %s))" % json.dumps(AXE.read_text()))
    found = page.value("""axe.run(document, {resultTypes: ["violations"]}).then(({passes, violations}) =>
        (passes.length < 10 ? [["too few rules"]] : []).concat(violations
        .map(({id, nodes}) => [id, nodes.map((node) => node.html).slice(0, 3)])))""")
    return found


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: 'make web' gets it, with npm")
def test_axe_finds_nothing(gateway, program):
    with Page(gateway) as page:
        # Only for this judgement: the page's own policy lets no text become code.
        page.send("Page.setBypassCSP", enabled=True)
        page.send("Page.reload")
        for panel in PANELS:
            fill(page, panel, program.pid)
            for width, dark in WINDOWS:
                look_like(page, width, dark)
                assert findings(page) == [], (panel, width, dark)
                assert page.value("document.documentElement.scrollWidth") <= width, (panel, width)
        page.show("dashboard")
        page.wait("document.querySelectorAll('.tile h3').length > 2")
        assert findings(page) == []
        page.push("#go")
        page.wait("!!document.getElementById('palette')")
        assert findings(page) == []
        page.press("Escape")
        page.show("console", target=program.pid)
        page.push("#terminal")
        page.wait("document.querySelector('.xterm-rows')?.textContent.includes('>>> ')")
        for width, dark in WINDOWS:
            look_like(page, width, dark)
            assert findings(page) == [], (width, dark)
        assert not page.errors


def test_keys_are_enough(gateway, program):
    """From the address to a function's variables, and to rows, without a mouse."""
    with Page(gateway) as page:
        page.sees("MainThread")
        page.press("k", control=True)
        page.wait("document.activeElement?.id == 'palette'")
        page.type("TIVITY")
        page.wait("document.querySelectorAll('#choices li').length == 1")
        page.press("Enter")
        page.wait("!document.getElementById('palette') && location.hash.startsWith('#/activity')")
        for _ in range(100):
            page.press("Tab")
            if page.focused("e.closest('.frames') && e.textContent == 'work'"):
                break
        else:
            pytest.fail("the function is never reached")
        page.press("Enter")
        page.sees("number")
        page.press("k", control=True)
        page.wait("document.activeElement?.id == 'palette'")
        page.type("query ")
        page.press("ArrowDown")
        page.wait("document.querySelector('#choices li[aria-selected=true]').id == 'choice-1'")
        page.press("ArrowUp")
        page.press("Enter")
        page.wait("document.querySelectorAll('#rows tbody tr').length > 0")
        # Missing things are reported, and Escape leaves all unchanged.
        page.press("k", control=True)
        page.wait("document.activeElement?.id == 'palette'")
        page.type("no such thing")
        page.sees("Nothing has that in its name")
        page.press("Escape")
        page.wait("!document.getElementById('palette')")
        assert page.value("location.hash").startswith("#/sql")
        page.press("1")
        page.wait("location.hash.startsWith('#/overview')")
        assert not page.errors


def reach(page, expression):
    """Goes on with Tab to the element `e` of which that is true."""
    page.wait("[...document.querySelectorAll('main *')].some((e) => %s)" % expression)
    for _ in range(150):
        page.press("Tab")
        if page.focused(expression):
            return
    pytest.fail("%s is never reached" % expression)


def go(page, panel):
    page.press("k", control=True)
    page.wait("document.activeElement?.id == 'palette'")
    page.type("panel " + panel)
    page.wait("document.querySelectorAll('#choices li').length == 1")
    page.press("Enter")
    page.wait("!document.getElementById('palette') && location.hash.startsWith('#/%s')" % panel)


def test_each_panel_by_keys(gateway, program):
    """Including actions that change something, and without a mouse."""
    with Page(gateway) as page:
        page.sees("MainThread")
        go(page, "profile")
        reach(page, "e.name == 'duration'")
        page.press("a", control=True)
        page.type("600")
        page.press("Enter")
        page.sees("running", "Draw it anew")
        for button, then in (("Stop", "finished"), ("Delete", "Nothing was recorded yet")):
            reach(page, "e.textContent == '%s'" % button)
            page.press("Enter")
            page.sees(then)
            # A file deleted while the page is drawn is missing, and the browser reports that.
            page.wait("!document.querySelector('iframe') || document.querySelector('iframe').contentDocument === null")
        go(page, "training")
        page.sees("No module of torch")
        go(page, "memory")
        reach(page, "e.type == 'number'")
        page.press("a", control=True)
        page.type("0.5")
        reach(page, "e.id == 'grow' && !e.disabled")
        page.press("Enter")
        page.wait("!!document.getElementById('grown')")
        go(page, "inspect")
        reach(page, "e.name == 'expression'")
        page.type("shelf")
        page.press("Enter")
        page.sees("bytearray")
        reach(page, "e.classList.contains('fold')")
        page.press("Enter")
        page.sees("[0]")
        go(page, "sql")
        reach(page, "e.id == 'editor'")
        page.press("a", control=True)
        page.press("Backspace")
        page.type("SELECT 6 * 7 AS answer")
        page.press("Enter", control=True)
        page.wait("document.querySelector('#rows tbody td')?.textContent == '42'")
        go(page, "console")
        reach(page, "e.id == 'code'")
        page.type("6 * 7")
        page.press("Enter", control=True)
        page.wait("document.querySelector('.result')?.textContent == '42'")
        go(page, "debug")
        reach(page, "e.id == 'hold' && !e.disabled")
        page.press("Enter")
        page.sees("Paused by this page")
        reach(page, "e.id == 'resume'")
        page.press("Enter")
        page.sees("ran again after")
        assert not page.errors


def test_queries_are_saved(gateway, program):
    with Page(gateway) as page:
        page.show("sql", target=program.pid, sql="SELECT 6 * 7 AS answer")
        page.sees("42")
        page.wait("!!document.querySelector('[name=name]')")
        page.value("document.querySelector('[name=name]').value = '<b>mine</b>'")
        page.push("#save")
        page.sees("<b>mine</b>")
        page.send("Page.reload")
        page.show("sql", target=program.pid, sql="SELECT 1")
        page.push("#saved button")
        page.sees("42")
        page.press("k", control=True)
        page.wait("document.activeElement?.id == 'palette'")
        page.type("mine")
        page.wait("document.querySelectorAll('#choices li').length == 1")
        page.press("Escape")
        page.push("#saved button", 1)
        page.wait("document.querySelectorAll('#saved li').length == 0")
        assert not page.errors


def test_ranks_are_a_grid(gateway, program):
    with Page(gateway) as page:
        page.show("overview")
        page.wait("document.querySelector('.ranks a strong')?.textContent == '3'")
        page.push(".ranks a")
        page.wait("location.hash.startsWith('#/activity?target=%d-')" % program.pid)
        page.show("overview")
        page.push(".processes a.job")
        page.wait("location.hash.startsWith('#/job?target=%d-')" % program.pid)
        page.sees("1 of 8 ranks read")
        assert not page.errors


@pytest.mark.parametrize("panel", PANELS)
def test_reload_in_the_middle_and_back(opened, program, panel):
    """The panel comes back as it was, by its address; so does the one before it."""
    opened.errors.clear()
    opened.show("overview", filter="web_debugged")
    opened.wait("document.getElementById('filter')?.value == 'web_debugged'")
    opened.show(panel, target=program.pid, **VALUES.get(panel, {}))
    opened.send("Page.reload")
    opened.sees(FULL[panel][0])
    opened.value("history.back()")
    opened.wait("document.getElementById('filter')?.value == 'web_debugged'" if panel != "overview" else "true")
    assert not opened.errors


@pytest.fixture(scope="module")
def opened(gateway):
    with Page(gateway) as page:
        yield page


def test_a_target_that_dies_in_any_panel():
    panels = PANELS[::support.count(2, 1)]
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(support.Program(
            [NEWEST.exe, PROGRAMS / "web_debugged.py"],
            env=dict(os.environ, RANK="0", WORLD_SIZE="1", MASTER_ADDR=jobs.ADDRESS, MASTER_PORT=str(place))))
                    for place, _ in enumerate(panels, 1)]
        for program in programs:
            assert program.line() == "ready"
        gateway = stack.enter_context(Gateway("--allow-write", *[program.pid for program in programs]))
        page = stack.enter_context(Page(gateway))
        for panel, program in zip(panels, programs):
            fill(page, panel, program.pid)
            program.kill()
            if panel == "console":
                page.value("document.getElementById('code').value = '1'")
            page.value("[...document.querySelectorAll('main button')].find((b) => "
                       "/again|^Run$|Look|^Record/.test(b.textContent))?.click()")
            ended = "process %d has ended" % program.pid if panel != "overview" else "has ended"
            page.wait("document.body.innerText.toLowerCase().includes(%s)" % json.dumps(ended))
            assert page.value("document.querySelector('main').dataset.panel") == panel
        # The browser itself logs the status.
        assert all(error["entry"]["source"] == "network" for error in page.errors), page.errors
