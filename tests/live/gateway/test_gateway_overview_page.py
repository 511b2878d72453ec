# SPDX-License-Identifier: GPL-3.0-or-later
"""The page's first view and its frame: what is wrong, all processes as a table, the panels of one of them."""
import json

import pytest

import support
from deadlock import deadlocked  # noqa: F401 (fixture)
from gateway_client import Gateway
from web_page import MARKS, Page, opened, page  # noqa: F401 (fixtures)

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
pytestmark = MARKS
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """A script, and a child of it."""
    script = tmp_path_factory.mktemp("scripts") / "parent of workers.py"
    script.write_text(PARENT)
    with support.Program([NEWEST.exe, script]) as running:
        yield running, int(running.line())


@pytest.fixture(scope="module")
def gateway(family, deadlocked):
    with Gateway(deadlocked.pid, family[0].pid, family[1]) as running:
        yield running


def names(page):
    return page.value("[...document.querySelectorAll('.processes tbody td:first-child a + .faint')].map((e) => Number.parseInt(e.textContent))")


def rows(page, count):
    page.wait("document.querySelectorAll('.processes tbody tr').length == %d" % count)


def test_the_worst_comes_first_and_children_are_below(page, family, deadlocked):
    page.show("overview")
    rows(page, 3)
    page.sees("deadlock", "parent of workers.py")
    # The list of processes, which has the parents, may come later.
    page.wait("document.querySelectorAll('.processes tr.child').length == 1")
    assert names(page) == [deadlocked.pid, family[0].pid, family[1]]
    # The sentence of the finding is above the table, which has its kind.
    assert page.value("[...document.querySelectorAll('.processes .mark')].map((e) => e.textContent)") == ["deadlock"]
    page.wait("document.querySelector('#findings').textContent.includes('wait for each other')")
    # What the processes took, from the third reading on.
    page.wait("document.querySelectorAll('.processes .spark polyline').length >= 3")
    page.push(".processes .fold")
    rows(page, 2)
    page.push(".processes .fold")
    rows(page, 3)


def test_it_is_sorted_and_filtered_by_its_address(page, family, deadlocked):
    page.show("overview", sort="process")
    page.wait("document.querySelector('[aria-sort=descending]')?.textContent.startsWith('Process')")
    sort = "[...document.querySelectorAll('thead button')].find((b) => b.textContent.startsWith('Threads')).click()"
    page.value(sort)
    page.wait("location.hash.includes('sort=threads')")
    assert names(page)[0] == deadlocked.pid
    page.value(sort)
    page.wait("location.hash.includes('up=1')")
    page.wait("!document.querySelector('.processes tbody tr').classList.contains('wrong')")
    page.show("overview", troubles=1)
    rows(page, 1)
    assert names(page) == [deadlocked.pid]
    page.show("overview", filter="PARENT OF")
    rows(page, 1)


def test_a_process_has_its_name_and_what_it_can_show(page, family):
    page.show("activity", target=family[0].pid)
    page.wait("document.querySelector('h1').textContent === %s" % json.dumps("parent of workers.py %d" % family[0].pid))
    # Neither torch nor a job, and this gateway only reads.
    panels = ["Activity", "Profile", "Memory", "Inspect", "SQL", "Time", "Dashboard"]
    page.wait("[...document.querySelectorAll('nav a')].map((a) => a.textContent).join() === %s" % json.dumps(",".join(panels)))
    page.wait("document.title.startsWith('parent of workers.py Activity')")
    page.show("overview")
    page.wait("!document.querySelector('nav')")


def test_one_row_of_panels_in_a_narrow_window(gateway, family):
    with Page(gateway, size=(390, 800)) as narrow:
        narrow.show("sql", target=family[0].pid, sql="SELECT * FROM python.threads")
        narrow.wait("document.querySelectorAll('#rows tbody tr').length == 1")
        narrow.wait("document.querySelectorAll('nav a').length == 7")
        assert narrow.value("new Set([...document.querySelectorAll('nav a')].map((a) => a.offsetTop)).size") == 1
        assert narrow.value("document.documentElement.scrollWidth") <= 390
        # Numbers and NULL are on one line each, and numbers at the right.
        one_line = "[...document.querySelectorAll('#rows td.number, #rows td.null')].every((e) => e.getClientRects().length && " \
                   "(() => { const range = document.createRange(); range.selectNodeContents(e); " \
                   "return range.getClientRects().length === 1; })())"
        assert narrow.value(one_line)
        assert narrow.value("getComputedStyle(document.querySelector('#rows td.number')).textAlign") == "right"
        # NULL is where the number would be.
        narrow.show("sql", target=family[0].pid, sql="SELECT 1 AS n, 'x' AS t UNION ALL SELECT NULL, NULL")
        narrow.wait("[...document.querySelectorAll('#rows td.null')].map((e) => getComputedStyle(e).textAlign).join() === 'right,left'")
        # The tab of what is shown is in sight.
        narrow.show("dashboard", target=family[0].pid)
        narrow.wait("(({ left, right }) => left >= 0 && right <= 390)(document.querySelector('nav [aria-current]').getBoundingClientRect())")
        assert not narrow.errors


def test_which_process_it_is_can_be_read_in_a_narrow_window(gateway, family):
    with Page(gateway, size=(390, 800)) as narrow:
        for panel, shown in (("overview", "#target"), ("activity", "h1 span")):
            narrow.show(panel, **({"target": family[0].pid} if panel == "activity" else {}))
            narrow.wait("document.querySelector('main').dataset.panel === '%s'" % panel)
            narrow.wait("(({ width }) => width > 80)(document.querySelector('%s').getBoundingClientRect())" % shown)
            # Another one can be chosen, and nothing is cut to an empty box.
            narrow.wait("[...document.querySelectorAll('.top select, .top button, .top a')].filter((e) => e.offsetParent)"
                        ".every((e) => e.offsetWidth >= Math.min(80, 5 * (e.selectedOptions?.[0] ?? e).textContent.length))")
        narrow.push("#go")
        narrow.wait("!!document.getElementById('palette')")
        assert not narrow.errors


def test_names_are_broken_between_words(tmp_path):
    script = tmp_path / "several_threads_deadlocked.py"
    script.write_text("input()")
    with support.Program([NEWEST.exe, script]) as program, Gateway(program.pid) as gateway, Page(gateway, size=(390, 800)) as narrow:
        narrow.show("overview")
        rows(narrow, 1)
        link = "document.querySelector('.processes tbody a')"
        narrow.wait(link + ".textContent === 'several_threads_deadlocked.py'")
        # The top of each letter.
        tops = narrow.value("(() => { const walk = document.createTreeWalker(%s, NodeFilter.SHOW_TEXT), tops = []; while (walk.nextNode()) "
                            "for (let at = 0; at < walk.currentNode.length; at++) { const range = document.createRange(); "
                            "range.setStart(walk.currentNode, at); range.setEnd(walk.currentNode, at + 1); "
                            "tops.push(range.getBoundingClientRect().top); } return tops; })()" % link)
        broken = [at for at in range(1, len(tops)) if tops[at] != tops[at - 1]]
        assert broken and all(script.name[at - 1] == "_" for at in broken), broken
        assert narrow.value("document.documentElement.scrollWidth") <= 390


def test_evidence_is_a_text_in_a_narrow_window(gateway, deadlocked):
    with Page(gateway, size=(390, 800)) as narrow:
        narrow.show("activity", target=deadlocked.pid)
        narrow.wait("document.querySelectorAll('.verdict dd a').length >= 4")
        assert narrow.value("Math.max(...[...document.querySelectorAll('.verdict dd a')].map((e) => e.getBoundingClientRect().height))") < 30


def test_the_caret_is_below_its_character(page, family):
    sql = "SELECT tid,\n  nope FROM python.threads"
    page.show("sql", target=family[0].pid, sql=sql)
    page.sees("no such column: nope")
    line, caret = page.value("document.querySelector('.failure pre').textContent").split("\n")[:2]
    assert line[caret.index("^"):].startswith("nope")
    assert "mono" in page.value("getComputedStyle(document.querySelector('.failure pre')).fontFamily").lower()
    assert page.value("getComputedStyle(document.querySelector('.failure pre')).whiteSpace") == "pre"
    # A misspelt name is mended by a button, on whichever line it is.
    page.show("sql", target=family[0].pid, sql=sql.replace("nope", "nme"))
    page.push("#mend")
    page.wait("document.querySelectorAll('#rows tbody tr').length === 1")
    page.errors.clear()
