# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of `probing serve`, in Chromium, against real processes."""
import json
import os
import subprocess

import pytest

import browser
import support
from gateway_client import Gateway, wait_until
from web_page import MARKS, PANELS, Page, opened, page  # noqa: F401 (fixtures)

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
pytestmark = MARKS
HOSTILE = "<img src=x onerror=alert(1)>"
PROGRAM = """
import sys, threading, time
class Model:
    def __init__(self):
        self.layers = [{"name": "first"}, {"name": %r}]
def spin():
    while True:
        sum(range(1000))
# A function and a file with such names, on the thread that spins.
names = {"spin": spin}
exec(compile("def inner(): spin()", %r, "exec"), names)
code = names["inner"].__code__
more = {"co_qualname": %r} if hasattr(code, "co_qualname") else {}
names["inner"].__code__ = code.replace(co_name=%r, **more)
def work(model):
    held = threading.RLock()
    held.acquire()
    waiter = threading.Thread(target=held.acquire, name="waiter", daemon=True)
    waiter.start()
    threading.Thread(target=names["inner"], name=%r, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
model = Model()
work(model)
""" % (HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)


@pytest.fixture(scope="module")
def program():
    with support.Program([NEWEST.exe, "-c", PROGRAM]) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture(scope="module")
def gateway(program):
    with Gateway(program.pid) as running:
        yield running


def test_one_process_is_shown_at_once(page, program):
    page.wait("location.hash.startsWith('#/activity?target=%d')" % program.pid)
    assert page.gateway.token not in page.value("location.href")
    page.sees("MainThread", "Thread.run", "running")


def test_the_token_is_asked_for(gateway):
    with browser.Browser(origin=gateway.url) as page:
        page.go(gateway.url)
        assert "needs the token" in page.value("document.body.innerText")
        page.value("document.querySelector('input').value = %s" % json.dumps(gateway.token))
        page.value("document.querySelector('button').click()")
        page.wait("document.body.innerText.includes('MainThread')")
        assert gateway.token not in page.value("location.href")
        # The browser itself logs the first status.
        assert all("401" in error["entry"]["text"] for error in page.errors), page.errors
        assert page.value("document.cookie") == ""  # no script can read it


def test_overview(page, program):
    page.show("overview")
    page.sees(str(program.pid), "work:", "-c", "held by", "1 of 1 target")
    page.push("tbody a")
    page.sees("MainThread")
    page.wait("location.hash.startsWith('#/activity?target=%d-')" % program.pid)


def test_stacks_with_variables_and_links(page, program):
    page.show("activity", target=program.pid)
    page.sees("MainThread", "waiter", "held by", HOSTILE)
    threads = {thread["name"]: thread["tid"] for thread in support.dump(program.pid)["threads"]}
    assert page.wait("[...document.querySelectorAll('.wait a')].map((a) => a.textContent).includes('%d')"
                     % threads["MainThread"])
    # Variables of the function that waits for stdin.
    page.value("[...document.querySelectorAll('.frames button')].find((b) => b.textContent == 'work').click()")
    page.sees("Model", "held")
    page.show("activity", target=program.pid, tid=threads["MainThread"])
    page.wait("document.querySelectorAll('article').length == 1")
    page.show("activity", target=program.pid, native=1)
    page.wait("document.querySelectorAll('.frames li.native').length > 0")


def test_source_and_what_has_moved(page, program):
    page.show("activity", target=program.pid, source=1)
    page.wait("!!document.querySelector('.frames .source')")
    page.show("activity", target=program.pid)
    page.wait("!document.querySelector('.frames .source')")
    page.push("#compare")
    page.sees("Compared with", "same place")
    page.push("#compare")
    page.wait("!document.querySelector('.compared')")


def test_a_paused_page_asks_for_nothing(page, program):
    page.show("activity", target=program.pid, paused=1)
    page.sees("MainThread")
    shown = page.value("document.querySelector('.fresh').textContent")
    # Times are shown in seconds: a click in the next second is visible, and a second click would send a new
    # request.
    page.wait("!%s.includes(new Date().toLocaleTimeString())" % json.dumps(shown))
    page.value("[...document.querySelectorAll('button')].find((b) => b.textContent == 'Refresh').click()")
    page.wait("document.querySelector('.fresh').textContent != %s" % json.dumps(shown))
    page.push("#pause")
    page.wait("!location.hash.includes('paused')")


def test_names_are_texts(page, program):
    page.show("activity", target=program.pid)
    page.sees(HOSTILE)
    for place in ("h3", ".frames button, .frames .name", ".frames .place"):
        page.wait("[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))" % (
            json.dumps(place), json.dumps(HOSTILE)))
    page.show("overview")
    page.wait("[...document.querySelectorAll('.processes a')].some((e) => e.title.includes(%s))" % json.dumps(HOSTILE))
    for sql in ("SELECT name FROM python.threads", "SELECT '%s' AS \"%s\"" % (HOSTILE, HOSTILE)):
        page.show("sql", target=program.pid, sql=sql)
        page.wait("[...document.querySelectorAll('#rows td')].some((e) => e.textContent == %s)" % json.dumps(HOSTILE))
    page.show("inspect", target=program.pid, expression="model.layers")
    page.sees(HOSTILE)
    assert page.value("document.querySelectorAll('#page img').length") == 0


def test_it_can_be_paused_by_keys(page, program):
    page.show("overview")
    page.wait("!!document.querySelector('section[aria-label=Overview]')")
    page.show("activity", target=program.pid)
    page.wait("!!document.getElementById('pause')")
    page.press("p")
    page.wait("location.hash.includes('paused=1')")
    page.press("p")
    page.wait("!location.hash.includes('paused')")
    page.press("7")
    page.wait("location.hash.startsWith('#/sql?target=%d')" % program.pid)
    page.press("?")
    page.wait("document.querySelector('dialog').open")
    page.press("Escape")
    page.value("document.querySelector('dialog').close()")


def test_sql(page, program):
    sql = "SELECT value AS x, value * value AS y FROM generate_series(1, 30)"
    page.show("sql", target=program.pid, sql=sql)
    page.wait("document.querySelectorAll('#rows tbody tr').length == 30")
    page.sees("30 rows")
    choose = "((e) => { e.value = %s; e.dispatchEvent(new Event('change', {bubbles: true})); })(document.getElementById('chart'))"
    for kind in ("line", "bar", "histogram", "auto"):
        page.value(choose % json.dumps(kind))
        page.wait("location.hash.includes('chart=%s') && !!document.querySelector('.chart canvas')" % kind)
        # The histogram counts rows.
        page.wait("document.querySelector('.u-legend').textContent.includes(%s)" % json.dumps("rows" if kind == "histogram" else "y"))
    page.show("sql", target=program.pid, chart="histogram", sql="SELECT name FROM python.threads")
    page.sees("No column has numbers")
    page.show("sql", target=program.pid, sql="SELECT nope FROM python.threads")
    page.sees("no such column: nope")
    # The browser itself logs the status.
    assert all("422" in error["entry"]["text"] for error in page.errors)
    page.errors.clear()


def test_a_diagnosis(page, program):
    page.show("sql", target=program.pid)
    page.wait("document.querySelectorAll('#skills li').length == 6")
    page.value("[...document.querySelectorAll('#skills button')].find((b) => b.textContent == 'hang').click()")
    page.sees("Does the program hang, and where?", "What do its threads do?", "waits_for", "Edit the query")
    # A text without the marks of Markdown, and no editor with another query above it.
    assert "`" not in page.value("document.getElementById('diagnosis').innerText") and not page.value("!!document.getElementById('editor')")
    page.send("Page.reload")
    page.sees("What do its threads do?")
    page.value("[...document.querySelectorAll('#diagnosis button')].find((b) => b.textContent == 'Edit the query').click()")
    page.wait("location.hash.includes('sql=') && !location.hash.includes('skill=')")
    page.wait("document.querySelectorAll('#rows tbody tr').length > 0")


def test_sql_is_typed_with_completion(page, program):
    page.show("overview")
    page.show("sql", target=program.pid)
    inside = "document.getElementById('editor').shadowRoot"
    page.wait("%s && !!%s.querySelector('.cm-content')" % (inside, inside))
    page.wait("document.querySelectorAll('aside details').length > 10")
    page.value("%s.querySelector('.cm-content').focus()" % inside)
    page.send("Input.dispatchKeyEvent", type="keyDown", key="a", code="KeyA", modifiers=2,
              windowsVirtualKeyCode=65)
    # Text that is typed over a selection gets styles of Chromium's own.
    page.press("Backspace")
    page.send("Input.insertText", text="SELECT count(*) AS n FROM python.thr")
    page.wait("[...%s.querySelectorAll('.cm-tooltip-autocomplete li')].some((li) => "
              "li.textContent.includes('threads'))" % inside)
    page.send("Input.insertText", text="eads")
    page.value("document.getElementById('run').click()")
    page.wait("document.querySelectorAll('#rows tbody tr').length == 1")
    assert "python.threads" in page.value("decodeURIComponent(location.hash)")


def test_a_value_is_unfolded(page, program):
    page.show("inspect", target=program.pid, expression="model")
    page.sees("Model")
    page.push("#value .fold")
    page.sees("layers")
    page.push("#value .parts .fold")
    page.sees("[0]", "[1]")


def test_a_flame_graph(page, program):
    page.show("profile", target=program.pid)
    page.wait("!document.getElementById('record').disabled")
    page.value("document.querySelector('[name=duration]').value = '600'")
    page.push("#record")
    page.sees("running, 9 m")
    # It is drawn while it is recorded, and a new picture takes the place of the old one, until somebody looks at it.
    picture = "document.querySelector('.live iframe[title=\"Flame graph\"]')"
    for _ in range(2):
        page.wait("%s && !%s.seen" % (picture, picture))
        page.value("%s.seen = true" % picture)
    page.value("%s.focus()" % picture)
    page.wait("!document.getElementById('live').checked")
    for field, text in (("name", "before the change"), ("note", HOSTILE)):
        page.value("document.querySelector('[name=%s]').value = %s" % (field, json.dumps(text)))
    page.push("#rename")
    page.sees("p1: before the change", HOSTILE)
    page.value("[...document.querySelectorAll('button')].find((b) => b.textContent == 'Stop').click()")
    page.sees("finished", "speedscope")
    # The graph has no origin: the page cannot access it, nor it the page.
    page.wait("document.querySelector('iframe').contentDocument === null")
    page.value("[...document.querySelectorAll('button')].find((b) => b.textContent == 'Delete').click()")
    page.sees("Nothing was recorded yet")


def test_two_recordings_are_compared(page, program, tmp_path):
    paths = [tmp_path / ("%s.profile" % name) for name in (HOSTILE, "today")]
    for path in paths:
        subprocess.run([support.BINARY, str(program.pid), "perf", "-d", "1s", "-o", path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    with Gateway(program.pid, *paths) as gateway, Page(gateway) as of_files:
        assert gateway.ask("/v1/profiles/f2").body.startswith(b"SQLite format 3")
        assert b"spin" in gateway.ask("/v1/profiles/f1?format=collapsed").body
        assert gateway.ask("/v1/profiles/f1?format=svg&before=f2").status == 400
        assert gateway.ask("/v1/profiles/f1?format=html&before=p9").status == 404
        of_files.show("profile", profile="f2")
        of_files.sees(HOSTILE + ".profile", "today.profile")
        of_files.wait("document.querySelector('iframe')?.src.endsWith('format=html')")
        of_files.value("((e) => { e.value = 'f1'; e.dispatchEvent(new Event('change', {bubbles: true})); })"
                       "(document.getElementById('before'))")
        of_files.wait("document.querySelector('iframe')?.src.endsWith('format=html&before=f1')")
        of_files.sees("orange takes more of the time")
        shown = gateway.ask("/v1/profiles/f2?format=html&before=f1")
        assert shown.body.startswith(b"<!DOCTYPE html>") and shown.headers["content-security-policy"].startswith("sandbox")
        assert of_files.value("document.querySelectorAll('#page img').length") == 0
        assert not of_files.errors


def test_back_and_reload(page, program):
    page.show("sql", target=program.pid, sql="SELECT 41 + 1 AS answer")
    page.sees("answer", "42")
    page.show("inspect", target=program.pid, expression="model")
    page.sees("Model")
    page.value("history.back()")
    page.sees("answer", "42")
    page.send("Page.reload")
    page.sees("answer", "42")


@pytest.mark.parametrize("dark, size", [(False, (1280, 720)), (True, (390, 800))])
def test_nothing_is_wider_than_the_window(gateway, program, dark, size):
    with Page(gateway, dark=dark, size=size) as page:
        for panel in PANELS:
            page.show(panel, target=program.pid)
            page.wait("!!document.querySelector('main section')")
            assert page.value("document.documentElement.scrollWidth") <= size[0], panel
        # The last one, Job: the program is in none, which the browser calls an error.
        page.sees("no target is a rank of a distributed job")
        assert ["/v1/job?" in error["entry"]["url"] for error in page.errors] == [True], page.errors


def test_a_target_that_dies_while_it_is_shown():
    with support.Program([NEWEST.exe, "-c", PROGRAM]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            page.sees("MainThread")
            program.kill()
            page.sees("has ended", "MainThread")
            # The browser itself logs a 404 to the console.
            assert all("404" in error["entry"]["text"] for error in page.errors), page.errors


def test_a_gateway_that_ends_while_it_is_shown(program):
    with Gateway(program.pid) as gateway, Page(gateway) as page:
        page.sees("MainThread")
        gateway.stop()
        page.sees("the gateway does not answer", "MainThread")


def test_it_is_small(gateway):
    names = ["/"] + ["/" + name for name in os.listdir(support.ROOT / "gateway/web/dist")]
    sizes = [len(gateway.ask(name).body) for name in names]
    assert sum(sizes) < 400000 and gateway.ask("/").headers["content-encoding"] == "gzip"
    assert "unsafe" not in gateway.ask("/").headers["content-security-policy"]
