# SPDX-License-Identifier: GPL-3.0-or-later
"""The page with the flame graph, in Firefox: test_page.py has all that it does, in Chromium."""
import json

import pytest

import firefox
import profiles
import support

OK = 0
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
HOSTILE = support.HERE / "programs" / "hostile_names.py"

pytestmark = pytest.mark.skipif(not firefox.COMMAND, reason="firefox is not installed")

CHOOSE = "document.querySelector('#%s [value=%s]').click();"
FUNCTIONS = """return [...document.querySelectorAll("#functions tbody tr")].map((row) => [
    row.querySelector("button").textContent, Number(row.dataset.self), Number(row.dataset.total)]);"""


@pytest.fixture(scope="module")
def page():
    with firefox.Firefox() as started:
        yield started


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(file, the command's output for the same recording)."""
    file = tmp_path_factory.mktemp("firefox") / "run.html"
    with support.Target(NEWEST, profiles.PROGRAM, 2) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        recording = profiles.Recording(target.pid, "-d", "2s", "-r", 400, "--json", "-o", file)
        return file, recording.result()


def test_its_views(page, recorded):
    file, report = recorded
    page.open(file)
    page.run(CHOOSE % ("pictures", "functions"))
    shown = {name: (own, total) for name, own, total in page.run(FUNCTIONS)}
    names = [row["func"] for row in report["functions"]]
    for row in report["functions"]:
        if names.count(row["func"]) == 1:
            own, total = shown.get(row["func"], (0, 0))
            assert abs(own - row["self_ns"]) <= 1 and abs(total - row["total_ns"]) <= 1, row
    for picture in ("icicle", "time", "flame"):
        page.run(CHOOSE % ("pictures", picture))
        assert page.value("probing.chart.picture.rows.length") > 3
        assert page.value("probing.chart.drawn") >= 0
    page.run(CHOOSE % ("weights", "wall"))
    assert page.value("probing.weighed().whole") > 2.9 * report["duration_ns"]
    page.run("const input = document.getElementById('search'); input.value = 'Condition.wait';"
             "input.dispatchEvent(new Event('input', { bubbles: true }));")
    assert 60 < float(page.value("document.getElementById('matched').textContent").split()[0]) < 70
    assert page.errors() == []


def test_keys_and_the_mouse(page, recorded):
    page.open(recorded[0])
    page.run(CHOOSE % ("pictures", "icicle"))
    place = page.run("const chart = probing.chart, place = chart.canvas.getBoundingClientRect();"
                     "const { start, end } = chart.picture.rows[4];"
                     "return [place.left + chart.x((start[0] + end[0]) / 2), place.top + chart.top(4) + 8];")
    whole = page.value("probing.chart.right - probing.chart.left")
    for kind in ("pointerMove", "pointerDown", "pointerUp"):
        more = {"x": round(place[0]), "y": round(place[1])} if kind == "pointerMove" else {"button": 0}
        page.send("WebDriver:PerformActions", actions=[{"type": "pointer", "id": "mouse", "parameters": {
            "pointerType": "mouse"}, "actions": [{"type": kind, **more}]}])
    assert page.value("document.getElementById('details').hidden") is False
    page.wait("probing.chart.right - probing.chart.left < %r" % whole)
    assert page.value("document.getElementById('tip').textContent")
    for key in "\ue00c", "l":
        page.send("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}])
    page.wait("probing.chart.right - probing.chart.left === %r" % whole)
    assert page.value("document.getElementById('functions').hidden") is False
    assert page.errors() == []


def test_hostile_names(page, tmp_path):
    with support.Target(NEWEST, HOSTILE) as target:
        names = json.loads(target.line())
        code, _, err = profiles.repeated(
            lambda: profiles.Recording(target.pid, "-d", "300ms", "-o", tmp_path / "run.html").end(),
            lambda found: profiles.has_samples(found[1]))
    assert code == OK and not err
    page.open(tmp_path / "run.html")
    page.run(CHOOSE % ("pictures", "functions"))
    text = page.value("document.getElementById('functions').innerText")
    assert "</script><script>fail()</script>" in text and "</script><script>fail()</script>" in names
    assert page.errors() == []
