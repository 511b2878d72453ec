# SPDX-License-Identifier: GPL-3.0-or-later
"""Eight tasks of a person in trouble, solved with the keyboard alone from the first view, each in at most four
actions: a key, a chord, or a text that is typed with Enter."""
import subprocess

import pytest

import jobs
import simulated
import support
import training
from deadlock import deadlocked  # noqa: F401 (fixture)
from gateway_client import Gateway, wait_until
from web_page import MARKS, Page

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
pytestmark = MARKS
LEAKING = """
import time
class Registry:
    pass
registry = Registry()
registry.sessions = []
def slow_part():
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
print("ready", flush=True)
while True:
    registry.sessions.extend(object() for _ in range(200))
    slow_part()
    time.sleep(0.02)
"""


class Person:
    """Sees the first view, and has four actions."""

    def __init__(self, page):
        self.page, self.actions = page, 0
        page.show("overview")
        page.wait("!!document.querySelector('.processes tbody tr')")

    def _act(self):
        self.actions += 1
        assert self.actions <= 4, "that is a fifth action"

    def press(self, key):
        self._act()
        self.page.press(key.removeprefix("Ctrl-"), control=key.startswith("Ctrl-"))

    def enter(self, text, key="Enter"):
        self._act()
        self.page.type(text)
        self.page.press(key.removeprefix("Ctrl-"), control=key.startswith("Ctrl-"))

    def goes_to(self, text):
        """Ctrl-K, and some letters."""
        self.press("Ctrl-k")
        self.page.wait("document.activeElement?.id === 'palette'")
        self._act()
        self.page.type(text)
        # The targets may have to be read first.
        self.page.wait("!!document.querySelector('#choices li')")
        self.page.press("Enter")


@pytest.fixture(scope="module")
def leaking(tmp_path_factory):
    script = tmp_path_factory.mktemp("script") / "leaking.py"
    script.write_text(LEAKING)
    with support.Program([NEWEST.exe, script]) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture(scope="module")
def gateway(leaking, deadlocked):  # noqa: F811
    with Gateway(leaking.pid, deadlocked.pid) as running:
        yield running


@pytest.fixture
def person(gateway):
    with Page(gateway) as page:
        yield Person(page)
        assert not page.errors, page.errors


def test_the_hung_rank_and_why():
    with jobs.ranks("/usr/bin/python3", 3, source=simulated.RANK % 2) as ranks, \
            Gateway(*(rank.pid for rank in ranks), PROBING_LIMITS="job=0.2") as gateway, Page(gateway) as page:
        page.wait("document.querySelectorAll('#findings a').length >= 1")
        person = Person(page)
        page.wait("document.querySelector('#findings a')?.textContent.includes('rank 1')")
        person.press("w")
        assert "never entered all_reduce" in page.focused("e.textContent")
        person.press("Enter")
        page.sees("1:[1]", "load")
        assert person.actions == 2


def test_the_deadlock(person, deadlocked):  # noqa: F811
    person.page.wait("!!document.querySelector('#findings a')")
    person.press("w")
    person.press("Enter")
    person.page.sees("wait for each other", "rests on", "wrong if")
    assert person.page.value("location.hash").startswith("#/activity?target=%d-" % deadlocked.pid)


def test_the_leak(person):
    person.goes_to("memory of leaking")
    person.page.wait("!!document.querySelector('#grow:not(:disabled)')")
    person.press("g")
    person.page.sees("registry.sessions")


def test_the_slow_function(person):
    person.goes_to("profile of leaking")
    person.page.wait("!!document.querySelector('#record:not(:disabled)')")
    person.press("r")
    person.page.wait("!!document.querySelector('iframe')", timeout=100)
    profile = person.page.gateway.ask("/v1/profiles").json["profiles"][-1]["id"]
    wait_until(lambda: b"slow_part" in person.page.gateway.ask("/v1/profiles/%s?format=collapsed" % profile).body, "it is not there")


def test_a_variable(person):
    person.goes_to("inspect leaking")
    person.page.wait("!!document.getElementById('expression')")
    person.press("/")
    person.enter("registry.sessions")
    person.page.sees("list", "show ")


def test_an_sql_mistake_is_mended(person):
    person.goes_to("sql of leaking")
    editor = "document.getElementById('editor')?.shadowRoot?.querySelector('.cm-content')"
    # What is typed replaces the query that is there.
    person.page.wait("!!%s && document.getElementById('editor').shadowRoot.activeElement === %s" % (editor, editor))
    person.enter("SELECT nme, tid FROM python.threads", "Ctrl-Enter")
    person.page.sees("no such column: nme", "did you mean name?", "Run with name")
    # The browser itself logs the 422 to the console.
    person.page.errors.clear()
    person.press("Ctrl-.")
    person.page.wait("document.querySelectorAll('#rows tbody tr').length >= 1")
    assert person.page.value(editor + ".textContent") == "SELECT name, tid FROM python.threads"
    assert person.actions == 4


def test_a_regression_between_two_recordings(leaking, tmp_path):
    paths = [tmp_path / name for name in ("monday.profile", "today.profile")]
    for path in paths:
        subprocess.run([support.BINARY, str(leaking.pid), "perf", "-d", "1s", "-o", path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    with Gateway(leaking.pid, *paths) as gateway, Page(gateway) as page:
        person = Person(page)
        person.goes_to("recording today")
        page.wait("!!document.getElementById('before')")
        person.press("c")
        person.press("ArrowDown")
        page.wait("document.querySelector('iframe')?.src.endsWith('format=html&before=f1')")


def test_a_slow_step():
    with training.start() as program:
        assert program.line(timeout=100) == "ready"
        subprocess.run([support.BINARY, str(program.pid), "config", "probing.torch.profiling=on"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            sql = "SELECT count(*) AS n FROM python.torch_step_timing"
            wait_until(lambda: gateway.ask("/v1/targets/%d/query" % program.pid, {"sql": sql}).status == 200 and
                       gateway.query(program.pid, sql)[0]["n"] > 3, "no step is recorded")
            person = Person(page)
            person.goes_to("panel training")
            page.wait("!!document.querySelector('#steps .chart canvas')", timeout=100)
            page.sees("step_ms", "optimizer_ms")
