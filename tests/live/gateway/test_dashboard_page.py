# SPDX-License-Identifier: GPL-3.0-or-later
"""Dashboards on the page: queries are pinned, and read again and again."""
import json

import pytest

from gateway_client import Gateway
from test_dashboards import BOARD, OWN, folder, program  # noqa: F401 (fixtures)
from web_page import MARKS, Page

pytestmark = MARKS


def test_a_query_is_pinned_and_read_again(program, folder):
    with Gateway(program.pid, "--dashboards", folder) as gateway, Page(gateway) as page:
        page.show("sql", target=program.pid, sql="SELECT state, count(*) AS threads FROM python.threads GROUP BY state")
        page.push("#pin")
        page.wait("!!document.querySelector('#pinning input')")
        page.value("document.querySelector('#pinning input').focus()")
        page.type("Threads now")
        page.push("#pinning button")
        page.sees("pinned to")
        saved = json.loads((folder / "threads-now.json").read_text("utf-8"))
        assert [chart["title"] for chart in saved["charts"]] == ["Threads now"] and saved["charts"][0]["show"] == "table"
        page.push("[href='#/dashboard?name=threads-now']")
        page.wait("document.querySelectorAll('.tile tbody tr').length == 1")
        page.sees("Threads now", "every 10 s")
        # A second chart goes to the same one; a colleague's page shows it.
        page.show("sql", target=program.pid, sql="SELECT 1 AS one")
        page.push("#pin")
        page.wait("[...document.querySelectorAll('#pinning option')].some((e) => e.value === 'threads-now')")
        page.value("((e) => { e.value = 'threads-now'; })(document.querySelector('#pinning select'))")
        page.value("document.querySelector('#pinning input').focus()")
        page.type("One")
        page.push("#pinning button")
        page.sees("pinned to")
        page.show("dashboard", name="threads-now", target=program.pid)
        page.wait("document.querySelectorAll('.tile').length == 2")
        page.push("[aria-label='Take One away']")
        page.wait("document.querySelectorAll('.tile').length == 1")
        assert len(json.loads((folder / "threads-now.json").read_text("utf-8"))["charts"]) == 1
        assert not page.errors


def test_readings_are_collected_over_time(program, folder):
    folder.mkdir(mode=0o700)
    charts = [{"title": "By state", "show": "over-time", "series": "state", **{"sql": BOARD["charts"][0]["sql"]}},
              {"title": "Rate", "show": "rate", "sql": "SELECT 5 AS five"},
              {"title": "Gone", "show": "line", "sql": "SELECT timestamp, loss FROM training_logs"}]
    (folder / "mine.json").write_text(json.dumps({"title": "Mine", "every": 1, "charts": charts}), "utf-8")
    with Gateway(program.pid, "--dashboards", folder) as gateway, Page(gateway) as page:
        page.show("dashboard", name="mine", target=program.pid)
        legend = "[...document.querySelectorAll('.tile[aria-label=\"%s\"] .u-legend .u-label')].map((e) => e.textContent).join()"
        page.wait(legend % "By state" + " === 'timestamp,idle'")
        page.wait(legend % "Rate" + " === 'timestamp,five'")
        page.sees("Not recorded here")
        # Such a table is not asked for again and again: the console has no error.
        assert not page.errors
        page.value("[...document.querySelectorAll('.tile a')].find((e) => e.textContent === 'How to record it').click()")
        page.sees("probing.step()")
        page.errors.clear()


@pytest.mark.parametrize("dark, size", [(False, (1440, 900)), (True, (390, 800))])
def test_each_of_the_five(program, dark, size):
    with Gateway(program.pid) as gateway, Page(gateway, dark=dark, size=size) as page:
        for name, where in [*((name, {"target": program.pid}) for name in OWN), ("training", {})]:
            page.show("dashboard", name=name, **where)
            page.wait("document.querySelectorAll('.tile').length >= 5")
            page.wait("![...document.querySelectorAll('.tile .fresh')].length")
            assert page.value("document.documentElement.scrollWidth") <= size[0], name
            assert page.value("document.querySelectorAll('.tile .failure').length") == 0, name
            assert not page.errors, name
