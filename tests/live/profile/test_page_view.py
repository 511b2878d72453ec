# SPDX-License-Identifier: GPL-3.0-or-later
"""The flame graph page: its pictures, what they hide, their colours, and the view in its address."""
import json

import pytest

import browser
import profiles
import support
from test_page import HELPERS, made_page, parts_of

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]

pytestmark = pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed")

# Functions of Python and of C: the garbage collector, the interpreter's own calls, a library's.
LIBPYTHON, LIBC, LIBZ = "/usr/lib/libpython3.12.so.1.0", "/lib/libc.so.6", "/usr/lib/libz.so.1"
FUNCTIONS = [  # kind, name, file, line, module
    (1, "clone3", None, 0, LIBC), (1, "thread_run", None, 0, LIBPYTHON),
    (1, "_PyEval_EvalFrameDefault", None, 0, LIBPYTHON), (0, "Thread._bootstrap", "/usr/lib/python3.12/threading.py", 1030, None),
    (0, "handle", "/srv/app.py", 10, None), (0, "parse", "/srv/app.py", 20, None), (0, "send", "/srv/net.py", 5, None),
    (1, "deflate", None, 0, LIBZ), (1, "gc_collect_main", None, 0, LIBPYTHON), (2, "<unreadable>", None, 0, None),
    (1, "_PyEval_other", None, 0, "/srv/mine.so")]
START = [0, 1, 2, 3, 2]
# Stacks of functions, outermost first, and the milliseconds of each.
STACKS = [(START + [4, 2], 40), (START + [4, 2, 5, 2], 10), (START + [4, 2, 5, 2, 7], 200),
          (START + [6, 2, 5, 7], 100), (START + [4, 2, 8], 50), ([9], 5), (START + [6, 10], 25)]


def written(page, stacks, functions=None, threads=1):
    """The text of a page with such stacks: [(functions, ms)]; the threads take turns."""
    before, data, behind = page
    functions = functions or FUNCTIONS
    texts = [name for _, name, *_ in functions]
    data = dict(data, texts=texts, stacks=[], frames=[], functions=[], runs=[], source=[], waits=["", "a lock"],
                duration=10 ** 6 * sum(ms for _, ms in stacks), started=1e9, lines=False, mode="cpu",
                threads=[{"process": 0, "tid": 100 + i, "name": "t%d" % i, "cpu": 0} for i in range(threads)])
    for i, (kind, _, file, line, module) in enumerate(functions):
        for path in file, module:
            if path and path not in texts[len(functions):]:
                texts.append(path)
        data["functions"] += [kind, i, texts.index(file) if file else -1, line, texts.index(module) if module else -1]
        data["frames"] += [i, line]
    numbers, now = {(): 0}, 0
    for number, (path, ms) in enumerate(stacks):
        for depth in range(1, len(path) + 1):
            if tuple(path[:depth]) not in numbers:
                data["stacks"] += [numbers[tuple(path[:depth - 1])], path[depth - 1]]
                numbers[tuple(path[:depth])] = len(numbers)
        spent = ms * 10 ** 6
        # Two thirds of each run were on a processor.
        data["runs"] += [number % threads, numbers[tuple(path)], 0, 10, now, spent, spent * 2 // 3, 0, spent ** 2 // 10, 0]
        now += spent
    return before + json.dumps(data).replace("<", "\\u003c") + behind


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The parts of a page of any recording."""
    file = tmp_path_factory.mktemp("page") / "run.html"
    with support.Target(NEWEST, profiles.PROGRAM) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        profiles.Recording(target.pid, "-d", "300ms", "-o", file).end()
    return parts_of(file)


@pytest.fixture(scope="module")
def chromium():
    with browser.Browser() as page:
        yield page


@pytest.fixture
def file(empty, tmp_path):
    path = tmp_path / "made.html"
    path.write_text(written(empty, STACKS, threads=2))
    return path


@pytest.fixture
def page(chromium, file):
    open_anew(chromium, file)
    yield chromium
    assert not chromium.errors


def open_anew(page, file, fragment=""):
    """A page whose address differs by its fragment alone would not be loaded again."""
    page.go("about:blank")
    page.open(str(file) + fragment)
    page.value(HELPERS)


def names(page, row):
    return [box["name"] for box in page.value("boxes(%d)" % row)]


def row_sums(page, row):
    """{name: milliseconds} of the time that passed."""
    return {box["name"]: round((box["end"] - box["start"]) / 1e6, 1) for box in page.value("boxes(%d)" % row)}


def label(page, name):
    """The text in such a box."""
    return page.value("(() => { for (const row of probing.chart.picture.rows) for (const stack of row.stack)"
                      "if (stack && probing.chart.look.label(stack).split(' [')[0] === '%s')"
                      "return probing.chart.look.label(stack); })()" % name)


def colour(page, name):
    return page.value("(() => { for (const row of probing.chart.picture.rows) for (const stack of row.stack)"
                      "if (stack && probing.chart.look.label(stack).split(' [')[0] === '%s')"
                      "return probing.chart.look.colours.indexOf(probing.chart.look.colour(stack)); })()" % name)


def test_inverted(page):
    """Functions by their own time, in each its callers: they have the time that they had through it."""
    page.value("pick('weights', 'wall')")
    page.press("v")
    assert row_sums(page, 1) == {"deflate": 300, "gc_collect_main": 50, "handle": 40, "_PyEval_other": 25,
                                 "parse": 10, "<unreadable>": 5}
    assert row_sums(page, 2)["parse"] == 300
    below = row_sums(page, 3)
    assert below["handle"] == 200 and below["send"] == 100
    page.hover(*page.value("middle(3, 0)"))
    text = page.value("id('tip').textContent")
    assert "46.5 %" in text and text.endswith("200 ms: deflate [libz.so.1], called through here"), text
    page.click(*page.value("middle(3, 0)"))
    assert page.value("[...document.querySelectorAll('#path button')].map((each) => each.textContent)") == [
        "all", "deflate [libz.so.1]", "parse", "handle"]
    assert "Called by" in page.value("id('details').innerText")


def test_interpreter_frames_and_thread_starts_are_hidden(page):
    """Their time is that of the function that they run; the list of functions has them."""
    page.value("pick('weights', 'wall')")
    assert names(page, 1) == ["handle", "send", "<unreadable>"]
    assert page.value("id('interpreter').checked") is False
    page.value("pick('pictures', 'functions')")
    listed = {row["name"] for row in page.value("functions()")}
    assert {"clone3 [libc.so.6]", "Thread._bootstrap", "_PyEval_EvalFrameDefault [libpython3.12.so.1.0]"} <= listed
    page.value("pick('pictures', 'flame'); id('interpreter').click()")
    assert names(page, 1) == ["clone3", "<unreadable>"]
    whole = page.value("probing.weighed().whole")
    page.value("id('interpreter').click()")
    assert page.value("probing.weighed().whole") == whole
    # A function of another library may have any name.
    assert "_PyEval_other" in names(page, 2)


def test_functions_of_modules_with_known_names_are_shown(chromium, empty, tmp_path):
    """A program may have a threading.py of its own; the interpreter's are known by their whole paths."""
    functions = [(0, "Thread.run", "/srv/threading.py", 1, None), (0, "_run_jobs", "/srv/python/runpy.py", 1, None),
                 (0, "Thread.run", "/usr/lib/python3.13t/threading.py", 1, None),
                 (0, "_run_code", "/opt/lib/python3.9/runpy.py", 1, None), (0, "_run_code", "<frozen runpy>", 1, None)]
    file = tmp_path / "modules.html"
    file.write_text(written(empty, [([4, 3, 2, 0, 1], 10)], functions))
    open_anew(chromium, file)
    assert [names(chromium, row) for row in (1, 2)] == [["Thread.run"], ["_run_jobs"]]
    assert chromium.value("probing.chart.picture.rows.length") == 3
    assert not chromium.errors


def test_colours_of_kinds(page):
    """Python, C and the garbage collector have colours of their own, and a legend; C has its library."""
    python, native = {colour(page, "handle"), colour(page, "send")}, {colour(page, "deflate")}
    assert python <= set(range(4)) and native <= {4, 5, 6}
    assert colour(page, "gc_collect_main") == 7 and colour(page, "<unreadable>") == 8
    assert page.value("[...id('kinds').children].map((each) => each.textContent.trim())") == [
        "Python", "C and C++", "garbage collector"]
    assert label(page, "deflate") == "deflate [libz.so.1]" and label(page, "handle") == "handle"


def test_threads_in_the_unit_of_the_mode(page):
    times = "[...document.querySelectorAll('#threads small')].map((each) => each.textContent)"
    assert page.value(times) == ["210 ms", "76.7 ms"]
    page.value("pick('weights', 'wall')")
    assert page.value(times) == ["315 ms", "115 ms"]
    page.value("pick('weights', 'gil')")
    assert page.value(times) == ["", ""]


def test_the_path_shows_its_end(chromium, empty, tmp_path):
    functions = [(0, "function_with_a_long_name_%d" % i, "/srv/app.py", i + 1, None) for i in range(40)]
    file = tmp_path / "deep.html"
    file.write_text(written(empty, [(list(range(40)), 10)], functions))
    open_anew(chromium, file)
    chromium.value("pick('pictures', 'icicle')")
    for row in (10, 20):
        chromium.click(*chromium.value("middle(%d, 0)" % row))
        assert chromium.value("(() => { const path = id('path'), last = path.lastElementChild;"
                              "return path.scrollWidth > path.clientWidth && last.textContent ==="
                              "'function_with_a_long_name_%d' && last.getBoundingClientRect().right <="
                              "path.getBoundingClientRect().right + 1; })()" % (row - 1))
    assert not chromium.errors


def address(page):
    """The page's address without its "#", that of the view."""
    return page.value("(probing.putAddress(), location.hash.slice(1))")


def looked_at(page):
    return page.value("""(() => ({ picture: probing.view.picture, weight: probing.view.weight,
        interpreter: id('interpreter').checked, merged: id('merged').checked, search: id('search').value,
        matched: id('matched').value, left: probing.chart.left, right: probing.chart.right,
        chosen: [...document.querySelectorAll('[aria-checked=true]')].map((each) => each.value),
        threads: id('threads').firstElementChild.textContent,
        path: [...document.querySelectorAll('#path button')].map((each) => each.textContent) }))()""")


@pytest.mark.parametrize("picture", ["flame", "icicle", "inverted"])
def test_the_view_is_in_the_address(page, file, picture):
    """Whoever opens the address sees what was seen when it was copied."""
    assert address(page) == ""
    page.value("pick('pictures', '%s'); pick('weights', 'wall'); id('interpreter').click(); id('merged').click();"
               "type('search', 'par & /se'); [...document.querySelectorAll('#threads input')][1].click()" % picture)
    page.click(*page.value("middle(3, 0)"))
    # By itself, before it is asked for.
    page.value("new Promise((done) => { const look = () => location.hash ? done() : setTimeout(look, 20); look(); })")
    seen, sent = looked_at(page), address(page)
    assert len(seen["path"]) == 4 and seen["search"] == "par & /se" and seen["threads"] == "1 of 2 threads"
    open_anew(page, file, "#" + sent)
    assert looked_at(page) == seen
    page.press("Escape")
    page.value("type('search', '')")
    assert "zoom" not in address(page) and "search" not in address(page) and "weight=wall" in address(page)


def test_a_time_range_and_a_zoom_into_time(page, file):
    page.value("pick('weights', 'wall'); id('from').value = '0.1'; type('to', '0.4'); pick('pictures', 'time');"
               "probing.chart.zoom(150e6, 250e6)")
    sent = address(page)
    open_anew(page, file, "#" + sent)
    assert page.value("[probing.chart.left, probing.chart.right]") == [150e6, 250e6]
    assert all(abs(a - b) < 2e3 for a, b in zip(page.value("probing.view.range"), (100e6, 400e6)))


@pytest.mark.parametrize("fragment", ["zoom=99.4.1e9", "zoom=-", "zoom=5-1", "picture=nothing&weight=", "threads=9.x",
                                      "at=5-5&lines=%ff", "zoom=" + "1." * 5000, "search=%3Cscript%3E", "=&&=&x"])
def test_an_address_may_say_anything(chromium, file, fragment):
    open_anew(chromium, file, "#" + fragment)
    assert names(chromium, 0) == ["all"]
    assert chromium.value("probing.chart.left === probing.chart.picture.begin")
    assert not chromium.errors


def test_time_order_without_what_is_too_short_to_be_seen(chromium, empty, tmp_path):
    """Boxes that no pixel can show are not made; zooming in shows them, and callers are whole all the time."""
    many = [([0, 1 + i % 3], 1) for i in range(20000)]
    file = tmp_path / "many.html"
    functions = [(0, name, "/srv/app.py", 1, None) for name in ("main", "one", "two", "three")]
    file.write_text(written(empty, many, functions))
    open_anew(chromium, file)
    chromium.value("pick('weights', 'wall'); pick('pictures', 'time')")
    assert chromium.value("boxes(1)") == [{"name": "main", "start": 0, "end": 20000e6}]
    assert 500 < chromium.value("probing.chart.picture.rows[2].stack.length") < 4000
    chromium.value("probing.chart.zoom(5000e6, 5006e6)")
    shown = [box["name"] for box in chromium.value("boxes(2)") if 5000e6 <= box["start"] < 5006e6]
    assert shown == ["three", "one", "two", "three", "one", "two"]
    assert not chromium.errors


HEAT = """[...document.querySelectorAll("#functions .file")].map((file) => ({
    head: file.querySelector("summary").textContent, open: file.open,
    rows: [...file.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
    heat: [...file.querySelectorAll("tr")].map((row) => Number(/more\\) (\\d+)%/.exec(row.lastChild.style.background)?.[1] ?? 0)) }))"""


def with_source(text, lines):
    """A written page with source: [(number of the file among its texts, line, text)]."""
    before, data, behind = text.partition('"source": []')
    assert data
    return before + '"source": ' + json.dumps([each for line in lines for each in line]).replace("<", "\\u003c") + behind


def test_the_heat_map(chromium, empty, tmp_path):
    """Files and lines by their own time, in colours that one can compare; a file that changed has no text."""
    functions = [(0, "main", "/srv/app.py", 2, None), (0, "hot", "/srv/app.py", 7, None), (0, "lib", "/srv/lib.py", 3, None),
                 (1, "deflate", None, 0, LIBZ)]
    text = written(empty, [([0], 100), ([0, 1], 400), ([0, 2], 300), ([0, 1, 3], 200)], functions)
    app = 4  # the first of the texts behind those of functions
    source = [(app, 1, "import lib"), (app, 2, "def main(): <b>&amp;</b></script>"), (app, 7, "def hot():"), (app, 8, "\tpass")]
    file = tmp_path / "heat.html"
    file.write_text(with_source(text, source))
    open_anew(chromium, file, "#picture=heat")
    app, lib = chromium.value(HEAT)
    assert app["head"] == "50.0 % /srv/app.py" and lib["head"] == "30.0 % /srv/lib.py" and app["open"] and lib["open"]
    assert app["rows"] == [["", "", "1", "import lib"], ["10.0 %", "100.0 %", "2", "def main(): <b>&amp;</b></script>"],
                           ["", "", "", "⋮"], ["40.0 %", "60.0 %", "7", "def hot():"], ["", "", "8", "    pass"]]
    assert lib["rows"] == [["", "", "", "⋮"], ["30.0 %", "30.0 %", "3", ""]]
    assert app["heat"] == [0, 50, 0, 100, 0] and lib["heat"] == [0, 87]
    # A click on a line shows its function; a search keeps the files that it finds.
    chromium.value("document.querySelector('#functions .file button').click()")
    assert chromium.value("document.querySelector('#details h2').textContent") == "main"
    assert chromium.value("document.querySelector('#functions .file').open")
    chromium.value("type('search', 'lib')")
    assert [each["head"] for each in chromium.value(HEAT)] == ["30.0 % /srv/lib.py"]
    assert not chromium.errors


def test_functions_that_share_a_line(chromium, empty, tmp_path):
    """Their own time adds up, and all of it is at least that; a click is for the one with the most, and a search
    finds the line by each."""
    functions = [(0, name, "/srv/app.py", 5, None) for name in ("first", "second", "third")]
    file = tmp_path / "line.html"
    file.write_text(written(empty, [([0], 30), ([1], 40), ([2], 30)], functions))
    open_anew(chromium, file, "#picture=heat")
    assert chromium.value(HEAT)[0]["rows"][-1] == ["100.0 %", "100.0 %", "5", ""]
    chromium.value("document.querySelector('#functions .file button').click()")
    assert chromium.value("document.querySelector('#details h2').textContent") == "second"
    for name, share in ("third", "30.0 %"), ("first", "30.0 %"), ("second", "40.0 %"):
        chromium.value("type('search', '%s')" % name)
        assert chromium.value(HEAT)[0]["rows"][-1][0] == share, name
    assert not chromium.errors


def test_a_heat_map_of_many_files_and_lines(chromium, empty, tmp_path):
    """It has bounds, and says what it leaves out; lines are made when a file is opened."""
    functions = [(0, "f%d" % i, "/srv/m%02d.py" % max(0, i - 5000), i + 1, None) for i in range(5080)]
    file = tmp_path / "many.html"
    file.write_text(written(empty, [([i], 1) for i in range(len(functions))], functions))
    open_anew(chromium, file, "#picture=heat")
    files = chromium.value(HEAT)
    assert len(files) == 50 and [bool(each["rows"]) for each in files] == [True] * 3 + [False] * 47
    assert files[0]["rows"][-1] == ["1001 more lines"] and len(files[0]["rows"]) == 4001
    assert chromium.value("document.querySelector('#functions').lastChild.textContent") == "30 more files"
    chromium.value("[...document.querySelectorAll('#functions summary')].pop().click()")
    assert chromium.value("document.querySelectorAll('#functions .file')[49].querySelectorAll('tr').length") == 2
    assert not chromium.errors


def test_keys_of_large_pages(chromium, empty, tmp_path):
    """Each key shows its picture, and draws no more boxes than there are pixels for; how fast is printed."""
    nodes = support.count(100000, 1000000)
    plain, file = tmp_path / "plain.html", tmp_path / "large.html"
    plain.write_text(written(empty, STACKS, [(0, "function_%d" % i, "/srv/module_%d.py" % (i % 9), i, None)
                                            for i in range(300)]))
    file.write_text(made_page(plain, nodes, nodes))
    open_anew(chromium, file)
    chromium.value("""(() => { const prototype = CanvasRenderingContext2D.prototype, fill = prototype.fillRect;
        prototype.fillRect = function (...box) { window.filled++; fill.apply(this, box); }; return 0; })()""")
    at_most = chromium.value("(probing.chart.scroll.clientHeight / 20 + 2) * (probing.chart.scroll.clientWidth / 0.8 + 1)")
    for key, picture in (("i", "icicle"), ("v", "inverted"), ("t", "time"), ("l", "functions"), ("h", "heat"), ("f", "flame")):
        took = chromium.value("""new Promise((done) => { const begun = performance.now(); window.filled = 0;
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "%s", bubbles: true }));
            const keyed = performance.now() - begun;
            requestAnimationFrame(() => setTimeout(() => done([keyed, performance.now() - begun, window.filled]))); })""" % key)
        *took, filled = took
        print(nodes, key, ["%.0f ms" % ms for ms in took], filled, "boxes")
        assert filled <= at_most and (filled or picture in ("functions", "heat")), (key, filled, at_most)
        assert chromium.value("probing.view.picture") == picture
    assert chromium.value("probing.chart.picture.rows.reduce((n, row) => n + row.stack.length, 0)") > 0.9 * nodes
    assert not chromium.errors
