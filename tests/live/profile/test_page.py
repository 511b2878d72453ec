# SPDX-License-Identifier: GPL-3.0-or-later
"""The page with the flame graph, in Chromium."""
import json
import os
import re

import pytest

import browser
import profiles
import support

OK, FAILED, USAGE = range(3)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
HOSTILE = support.HERE / "programs" / "hostile_names.py"

pytestmark = pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed")

HELPERS = """
globalThis.id = (name) => document.getElementById(name);
globalThis.pick = (group, value) => document.querySelector(`#${group} [value=${value}]`).click();
globalThis.type = (name, text) => {
	id(name).value = text;
	id(name).dispatchEvent(new Event("input", { bubbles: true }));
	id(name).dispatchEvent(new Event("change", { bubbles: true }));
};
globalThis.nameOf = (place) => probing.data.texts[probing.data.functions.name[place]];
globalThis.boxes = (row) => [...probing.chart.picture.rows[row].stack].map((stack, i) => ({
	name: stack ? nameOf(probing.shown().place[stack]) : "all",
	start: probing.chart.picture.rows[row].start[i], end: probing.chart.picture.rows[row].end[i] }));
globalThis.middle = (row, box) => {
	const chart = probing.chart, place = id("chart").getBoundingClientRect();
	const { start, end } = chart.picture.rows[row];
	return [place.left + chart.x((start[box] + end[box]) / 2), place.top + chart.top(row) + 8];
};
globalThis.functions = () => [...document.querySelectorAll("#functions tbody tr")].map((row) => ({
	name: row.querySelector("button").textContent, self: Number(row.dataset.self),
	total: Number(row.dataset.total) }));
1"""


@pytest.fixture(scope="module")
def working(tmp_path_factory):
    """(file, the command's output for the same recording)."""
    file = tmp_path_factory.mktemp("page") / "run.html"
    with support.Target(NEWEST, profiles.PROGRAM, 2) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        recording = profiles.Recording(target.pid, "-d", "2s", "-r", 400, "--json", "-o", file)
        return file, recording.result()


@pytest.fixture(scope="module")
def chromium():
    with browser.Browser() as page:
        yield page


@pytest.fixture
def page(chromium, working):
    chromium.open(working[0])
    chromium.value(HELPERS)
    yield chromium
    assert not chromium.errors


def weights(report, key="total_ns"):
    """{function: weight}, of functions that have no other of their name."""
    names = [row["func"] for row in report["functions"]]
    return {row["func"]: row[key] for row in report["functions"] if names.count(row["func"]) == 1}


def found(page, key="total"):
    page.value("pick('pictures', 'functions')")
    return {row["name"]: row[key] for row in page.value("functions()")}


def test_functions_are_those_of_the_table(page, working):
    _, report = working
    for key in ("self", "total"):
        shown = found(page, key)
        for name, weight in weights(report, key + "_ns").items():
            assert abs(shown.get(name, 0) - weight) <= 1, name
    assert page.value("probing.weighed().whole") == report["weight_ns"]
    assert re.fullmatch(r"probing \S+ · cost: \d+ stops of \d+ µs \(99 %%: \d+ µs, longest \d+ µs\), "
                        r"[\d.]+ \w+ in all · own CPU [\d.]+ %% · \d+ missed, \d+ late, %d unreadable"
                        % report["cost"]["unreadable"], page.value("id('cost').innerText"))
    assert profiles.readable(report)
    assert re.match(r"process %d · Python 3\.\S+ · .* · 2\.\d\d s · 3 threads · 400 samples a second"
                    % report["pid"], page.value("id('facts').innerText"))
    assert abs(page.value("probing.weighed().n") - report["independent_samples"]) < 0.2
    text = page.value("document.querySelector('#functions tbody tr').innerText")
    row = report["functions"][0]
    assert text.split("\t")[:3] == [
        "%.1f %%" % (100 * row["share"]),
        "%.0f–%.0f %%" % (100 * row["share_low"], 100 * row["share_high"]),
        "%.1f %%" % (100 * row["total_ns"] / report["weight_ns"])]


def test_boxes_lie_in_those_of_their_callers(page):
    for picture in ("flame", "icicle"):
        page.value("pick('pictures', '%s')" % picture)
        rows = [page.value("boxes(%d)" % row)
                for row in range(page.value("probing.chart.picture.rows.length"))]
        assert rows[0][0]["name"] == "all" and rows[1][0]["name"] == "<module>"
        for above, row in zip(rows, rows[1:]):
            for box in row:
                assert any(caller["start"] <= box["start"] + 1e-3 and
                           box["end"] <= caller["end"] + 1e-3 for caller in above)
            assert all(left["end"] <= right["start"] + 1e-3 for left, right in zip(row, row[1:]))


def test_wall_by_thread_and_state(page, working):
    """Each filter changes the weights: two idle threads have two thirds, and all of the sleep."""
    _, report = working
    page.value("pick('weights', 'wall')")
    whole = page.value("probing.weighed().whole")
    assert abs(whole - 3 * report["duration_ns"]) < 0.02 * whole
    assert abs(found(page)["Condition.wait"] - whole * 2 / 3) < 0.02 * whole
    idle = "[...document.querySelectorAll('#threads input')].filter((box) => " \
           "box.parentNode.textContent.includes('idle-'))"
    page.value(idle + ".forEach((box) => box.click())")
    assert abs(page.value("probing.weighed().whole") - whole / 3) < 0.02 * whole
    assert "Condition.wait" not in found(page) and "burn" in found(page)
    assert page.value("id('threads').innerText").startswith("1 of 3 threads")
    page.value("document.querySelector('#threads button').click()")
    assert page.value("probing.weighed().whole") == whole
    page.value("document.querySelectorAll('#states input')[2].click()")
    asleep = whole - page.value("probing.weighed().whole")
    assert asleep >= 0.66 * whole and "Condition.wait" not in found(page)


def test_what_the_time_was(page, working):
    """A wall-clock view shows the kinds of time of each box and each function."""
    page.value("pick('weights', 'wall'); pick('pictures', 'functions'); [...document.querySelectorAll("
               "'#functions button')].find((each) => each.textContent === 'Condition.wait').click()")
    parts = page.value("[...document.querySelectorAll('#parts tr')].map((row) => row.innerText.split('\\t'))")
    assert sum(float(share.split()[0]) for share, _ in parts) > 99, parts
    assert float(parts[0][0].split()[0]) > 95 and "a lock" in parts[0][1], parts
    page.value("pick('pictures', 'icicle')")
    depth = page.value("probing.chart.picture.rows.length")
    row = next(number for number in range(depth) for box in page.value("boxes(%d)" % number)
               if box["name"] == "Condition.wait")
    box = next(i for i, each in enumerate(page.value("boxes(%d)" % row)) if each["name"] == "Condition.wait")
    page.hover(*page.value("middle(%d, %d)" % (row, box)))
    text = page.value("id('tip').textContent")
    assert re.search(r"\nself .*\n(?:9\d\.\d|100\.0) % a lock", text), text
    page.value("pick('weights', 'cpu')")
    assert page.value("document.getElementById('parts') === null")


def test_gil_and_blocked(page, working):
    """Two threads wait for a lock all the time; the thread that runs Python holds the GIL."""
    _, report = working
    page.value("pick('weights', 'blocked')")
    whole = page.value("probing.weighed().whole")
    assert abs(whole - 2 * report["duration_ns"]) < 0.2 * whole
    assert found(page)["Condition.wait"] > 0.9 * whole
    page.value("pick('weights', 'gil')")
    assert 0 < page.value("probing.weighed().whole") <= 1.01 * report["duration_ns"]
    assert "burn" in found(page) and "Condition.wait" not in found(page)


def test_time_range(page, working):
    """Halves add up to the whole."""
    page.value("pick('weights', 'wall')")
    whole = page.value("probing.weighed().whole")
    seconds = working[1]["duration_ns"] / 1e9
    sums = []
    for begin, end in ((0, seconds / 2), (seconds / 2, seconds + 1)):
        page.value("id('from').value = %f; type('to', '%f')" % (begin, end))
        sums.append(page.value("probing.weighed().whole"))
    assert abs(sum(sums) - whole) < 0.01 * whole and min(sums) > 0
    page.value("id('whole').click()")
    assert page.value("probing.weighed().whole") == whole
    x, y, width = page.value("(() => { const b = id('overview').getBoundingClientRect();"
                             "return [b.left, b.top + 20, b.width]; })()")
    for kind, part in (("mousePressed", 0.25), ("mouseMoved", 0.5), ("mouseReleased", 0.5)):
        page.send("Input.dispatchMouseEvent", type=kind, x=x + part * width, y=y, button="left",
                  buttons=1, clickCount=1)
    begin, end = page.value("probing.view.range")
    assert abs(begin / 1e9 - seconds / 4) < 0.1 and abs(end / 1e9 - seconds / 2) < 0.1
    assert 0 < page.value("probing.weighed().whole") < whole


def test_a_range_in_the_address(page, working):
    """A page that shows this one chooses it by the time of day; a range that is none changes nothing."""
    started = page.value("probing.data.started")
    page.value("location.hash = '#at=%.3f-%.3f'" % (started + 0.5, started + 1.25))
    page.wait("Math.abs(probing.view.range[0] - 5e8) < 2e6 && Math.abs(probing.view.range[1] - 1.25e9) < 2e6")
    page.value("location.hash = '#at=1-x'")
    page.value("location.hash = '#at=%.3f-%.3f'" % (started, started + 1000))
    page.wait("probing.view.range[0] === 0 && probing.view.range[1] === probing.data.duration")


def test_search(page, working):
    _, report = working
    page.value("type('search', 'SHORT')")
    share = 100 * weights(report)["short"] / report["weight_ns"]
    assert page.value("id('matched').value") == "%.1f %% matched" % share
    page.value("type('search', '/^(short|long) /')")
    share += 100 * weights(report)["long"] / report["weight_ns"]
    assert abs(float(page.value("id('matched').value").split()[0]) - share) < 0.11
    page.value("type('search', '/(/')")
    assert page.value("id('matched').value") == "0.0 % matched"
    assert not page.value("id('search').checkValidity()")
    page.value("type('search', '')")
    assert page.value("id('matched').value") == ""


def test_zoom_by_click_and_keys(page):
    page.value("pick('pictures', 'icicle')")
    row = page.value("probing.chart.picture.rows.findIndex((row, i) => "
                     "boxes(i).some((box) => box.name === 'short'))")
    box = [box["name"] for box in page.value("boxes(%d)" % row)].index("short")
    page.click(*page.value("middle(%d, %d)" % (row, box)))
    zoomed = page.value("[probing.chart.left, probing.chart.right]")
    short = page.value("boxes(%d)[%d]" % (row, box))
    assert zoomed == [short["start"], short["end"]]
    path = page.value("id('path').innerText").split("\n")
    assert path[0].startswith("all") and path[-1].endswith("short") and "work" in path[-2]
    assert page.value("id('details').innerText").find("Called by") > 0
    assert "work" in page.value("id('details').innerText")
    page.press("Escape")
    assert page.value("probing.chart.right") == page.value("probing.chart.picture.end")
    assert page.value("id('path').innerText") == "all"
    page.value("id('chart').focus()")
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowRight"):
        page.press(key)
    focus = page.value("probing.chart.focus")
    outermost = [box["name"] for box in page.value("boxes(1)")]
    assert focus["row"] == 1 and page.value("id('said').textContent").startswith(
        outermost[:2][-1] + "\n/")
    page.press("Enter")
    assert page.value("id('details').hidden") is False
    page.press("+")
    assert page.value("probing.chart.right - probing.chart.left") < \
        0.6 * page.value("probing.chart.picture.end")
    page.press("l")
    assert page.value("id('functions').hidden") is False
    page.press("t")
    assert page.value("probing.chart.picture.isTime")


def test_hover(page):
    page.value("pick('pictures', 'icicle')")
    page.hover(*page.value("middle(2, 0)"))
    text = page.value("id('tip').hidden ? '' : id('tip').textContent")
    assert re.match(r"main\n/.*profiled\.py:\d+\ntotal \d+\.\d % \(\d+–100 %\), .*\nself ", text), text


def test_time_order(page, working):
    page.value("pick('weights', 'wall'); pick('pictures', 'time')")
    rows = page.value("probing.chart.picture.rows.map((row) => row.thread ?? null)")
    assert sorted(row for row in rows if row is not None) == [0, 1, 2] and rows[0] is not None
    assert page.value(
        "probing.chart.picture.rows.every((row) => row.start.every((start, i) => "
        "start <= row.end[i] && (!i || row.end[i - 1] <= start + 1e-3)))")
    first = page.value("boxes(1)")
    assert first and sum(box["end"] - box["start"] for box in first) > \
        0.95 * working[1]["duration_ns"]


def test_lines_and_merged_recursion(chromium, tmp_path):
    program = tmp_path / "deep.py"
    program.write_text("def down(n):\n"
                       "    if n:\n"
                       "        down(n - 1)\n"
                       "    while not n:\n"
                       "        sum(range(100))\n"
                       "print('ready', flush=True)\n"
                       "down(9)\n")
    with support.Target(NEWEST, program) as target:
        assert target.line() == "ready"
        profiles.Recording(target.pid, "-d", "2s", "-o", tmp_path / "run.html").end()
    chromium.open(tmp_path / "run.html")
    chromium.value(HELPERS)
    assert chromium.value("probing.chart.picture.rows.length") == 12
    whole = chromium.value("probing.weighed().whole")
    assert abs(found(chromium)["down"] - whole) < 0.05 * whole
    chromium.value("pick('pictures', 'flame'); id('merged').click()")
    assert chromium.value("probing.chart.picture.rows.length") == 3
    assert found(chromium)["down"] > 0.95 * whole
    chromium.value("id('merged').click(); id('lines').click(); pick('pictures', 'functions')")
    text = chromium.value("id('functions').innerText")
    assert "deep.py:3" in text and "deep.py:5" in text
    assert not chromium.errors


def test_hostile_names(chromium, tmp_path):
    """Names are shown, and are no part of the page; it asks for nothing from elsewhere."""
    with support.Target(NEWEST, HOSTILE) as target:
        names = json.loads(target.line())
        code, out, err = profiles.repeated(
            lambda: profiles.Recording(target.pid, "-d", "300ms", "-o", tmp_path / "run.html").end(),
            lambda found: profiles.has_samples(found[1]))
    assert code == OK and not err, err
    text = (tmp_path / "run.html").read_text(encoding="ascii", errors="surrogateescape")
    assert text.count("</script>") == 3 and "<!--" not in text
    chromium.open(tmp_path / "run.html")
    chromium.value(HELPERS)
    shown = [box["name"] for row in range(chromium.value("probing.chart.picture.rows.length"))
             for box in chromium.value("boxes(%d)" % row)]
    for name in names:
        if name and name.isprintable() and "\ud800" not in name:
            assert name in shown, name
    assert r"line\nfeed\x0d" in shown and r"\x1b[2J\x07bell" in shown and r"\u202eback\u2066" in shown
    for picture in ("functions", "time", "flame"):
        chromium.value("pick('pictures', '%s')" % picture)
    assert "</script><script>fail()</script>" in chromium.value(
        "pick('pictures', 'functions'); id('functions').innerText")
    assert not chromium.errors
    # The policy forbids content that a name could inject.
    assert chromium.value("new Promise((done) => { const script = document.createElement('script');"
                          "script.textContent = 'globalThis.failed = 1';"
                          "document.body.append(script); setTimeout(() => done("
                          "globalThis.failed === undefined), 50); })")
    assert chromium.value("fetch('https://example.com').then(() => false, () => true)")
    chromium.errors.clear()


def test_nothing(chromium, tmp_path):
    """A program that sleeps used no processor; the elapsed time is there."""
    with support.Target(NEWEST, profiles.PROGRAM) as target:
        assert target.line() == "ready"
        support.wait_for_sleep(target.pid, "pipe_read")
        profiles.Recording(target.pid, "-d", "300ms", "-o", tmp_path / "run.html").end()
    chromium.open(tmp_path / "run.html")
    chromium.value(HELPERS)
    if not chromium.value("probing.weighed().whole"):
        assert "try wall" in chromium.value("id('path').innerText")
    for picture in ("icicle", "time", "functions", "flame"):
        chromium.value("pick('pictures', '%s')" % picture)
    chromium.value("pick('weights', 'wall')")
    assert chromium.value("id('path').innerText") == "all"
    assert "main" in found(chromium)
    chromium.value("document.querySelectorAll('#threads button')[1].click()")
    assert "try wall" in chromium.value("id('path').innerText")
    assert not chromium.errors


def test_source(chromium, working, tmp_path):
    """Lines with their weights; none if not wanted, or if a path looks like a secret."""
    chromium.open(working[0])
    chromium.value(HELPERS)
    chromium.value("pick('pictures', 'functions'); [...document.querySelectorAll('#functions button')]"
                   ".find((each) => each.textContent === 'burn').click()")
    shown = chromium.value("document.querySelector('.code').innerText")
    assert re.search(r"^[\d.]+ %\t[\d.]+ %\t\d+\t        sum\(range\(100\)\)$", shown, re.M), shown
    assert "def burn(seconds):" in shown and not chromium.errors
    place = tmp_path / "my_secrets"
    place.mkdir()
    for folder, options, kept in ((tmp_path, [], True), (tmp_path, ["--no-source"], False),
                                  (place, [], False)):
        program = folder / "program.py"
        program.write_text("print('ready', flush=True)\nwhile True: len('</script>treasure')\n")
        os.utime(program, (1e9, 1e9))
        with support.Target(NEWEST, program) as target:
            assert target.line() == "ready"
            profiles.repeated(
                lambda: profiles.Recording(target.pid, "-d", "200ms", "-o", folder / "x.html", *options).end(),
                lambda found: profiles.has_samples(found[1]))
        text = (folder / "x.html").read_text()
        assert ("treasure" in text) == kept and text.count("</script>") == 3


def parts_of(file):
    """The parts before its data, the data, and the part after."""
    text = file.read_text()
    begin = text.index('id="data">') + 10
    end = text.index("</script>", begin)
    return text[:begin], json.loads(text[begin:end]), text[end:]


def test_processes(probing, chromium, tmp_path):
    """A process not chosen weighs nothing, and its threads are not chosen."""
    script, file, runs = tmp_path / "of_the_page.py", tmp_path / "run.html", tmp_path / "run.profile"
    script.write_bytes(profiles.PROGRAM.read_bytes())
    with support.Target(NEWEST, script, 1) as one, support.Target(NEWEST, script, 1) as two:
        for target in one, two:
            assert target.line() == "ready"
            target.send(b"go 600\n")
        assert probing("/of_the_page/", "perf", "--all", "-d", "2s", "-o", runs).code == OK
    assert probing(runs, "perf", "-o", file).code == OK
    pids = [one.pid, two.pid]
    expected = {pid: sum(thread["cpu_ns"] for thread in json.loads(
        probing(runs, "perf", "--json").out)["threads"] if thread["pid"] == pid) for pid in pids}
    chromium.open(file)
    names = chromium.value("[...document.querySelectorAll('#processes label')].map((e) => e.innerText"
                           "|| e.textContent)")
    assert sorted(int(name.split()[0]) for name in names) == sorted(pids), names
    for name in names:
        chromium.value("[...document.querySelectorAll('#processes label')].find((e) => "
                       "e.textContent === %s).click()" % json.dumps(name))
        left = sum(pids) - int(name.split()[0])
        assert chromium.value("probing.weighed().whole") == expected[left]
        assert chromium.value("document.querySelector('#processes summary').textContent") == "1 of 2 processes"
        assert chromium.value("document.querySelectorAll('#threads input:checked').length") == 2
        chromium.value("document.querySelector('#processes button').click()")
        assert chromium.value("probing.weighed().whole") == sum(expected.values())
    assert not chromium.errors


def test_page_is_small(working):
    before, _, behind = parts_of(working[0])
    assert len((before + behind).encode()) < 40000


def made_page(file, stacks, runs):
    """A page of @runs runs in @stacks stacks, from another page's."""
    before, data, behind = parts_of(file)
    data["stacks"], data["frames"] = [], [n for f in range(len(data["functions"]) // 5)
                                          for n in (f, 1)]
    frames = len(data["frames"]) // 2
    for number in range(1, stacks):
        data["stacks"] += [(number - 1) // 3, number % frames]
    step = data["duration"] // runs
    data["runs"] = [n for i in range(runs) for n in (
        0, 1 + i * 7919 % (stacks - 1), 0, 1, i * step, step, step, 0, step ** 2, 0)]
    return before + json.dumps(data).replace("<", "\\u003c") + behind


def test_large(chromium, working, tmp_path):
    """A hundred thousand frames are drawn; how fast is for make bench to say."""
    file = tmp_path / "large.html"
    file.write_text(made_page(working[0], 100000, 200000))
    chromium.open(file)
    chromium.value(HELPERS)
    chromium.value("id('interpreter').click()")  # shows them
    assert chromium.value("probing.chart.picture.rows.reduce((n, row) => n + row.stack.length, 0)") > 90000
    times = chromium.value("Array.from({ length: 9 }, () => { probing.chart.draw();"
                           "return probing.chart.drawn; })")
    print("drawn in", sorted(times)[4], "ms")
    assert not chromium.errors and os.path.getsize(file) > 1e6
