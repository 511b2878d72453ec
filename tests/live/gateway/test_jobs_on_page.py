# SPDX-License-Identifier: GPL-3.0-or-later
"""A job on the page's first view: one row with its ranks, the verdict above it, and those that are gone."""
import os

import browser
import jobs
import simulated
import support
from gateway_client import Gateway, wait_until
from test_jobs_of_overview import LIMITS, PYTHON, hung  # noqa: F401 (fixture)
from web_page import MARKS, Page

pytestmark = MARKS
ROWS = "document.querySelectorAll('.processes tbody tr').length"


def test_a_job_is_one_row_with_its_ranks(hung):  # noqa: F811
    with Gateway(*hung, **LIMITS) as gateway, Page(gateway) as page:
        page.show("overview")
        page.wait("document.querySelector('#findings li.high, #findings li.medium')?.textContent.includes('never entered all_reduce')")
        page.wait(ROWS + " === 1")
        assert page.value("[...document.querySelectorAll('.ranks strong')].map((e) => e.textContent).join()") == "0,1,2"
        page.wait("[...document.querySelectorAll('.ranks .wrong strong')].map((e) => e.textContent).join() === '1'")
        page.sees("hangs", "job of 3 ranks")
        page.push(".processes .fold")
        page.wait(ROWS + " === 4")
        page.show("overview", troubles=1)
        page.wait("document.querySelectorAll('.ranks a').length === 3")
        # The evidence: all ranks as one tree; a cell leads to its rank.
        page.push("#findings a")
        page.wait("location.hash.startsWith('#/job?target=%d-')" % hung[1])
        page.show("overview")
        page.push(".ranks a", 2)
        page.wait("location.hash.startsWith('#/activity?target=%d-')" % hung[2])
        assert not page.errors


def test_a_rank_that_is_gone_stays():
    with jobs.ranks(PYTHON, 3, source=simulated.RANK % 2, MASTER_PORT="29502") as ranks, \
            Gateway(*(rank.pid for rank in ranks), **LIMITS) as gateway, Page(gateway) as page:
        page.show("overview")
        page.wait("document.querySelectorAll('.ranks a').length === 3")
        os.kill(ranks[2].pid, 9)
        page.wait("document.querySelector('.ranks .gone')?.textContent.startsWith('2 killed by SIGKILL ')")
        page.sees("1 gone")
        page.push(".processes a.job")
        page.sees("Rank 2 has ended: killed by SIGKILL")


def test_nothing_is_right_before_all_are_judged():
    """The verdict on a job takes a second or two: until then the page says that it is not known."""
    watch = "told = new Set(); new MutationObserver(() => told.add(document.querySelector('#findings')?.innerText ?? ''))" \
            ".observe(document, { subtree: true, childList: true, characterData: true })"
    with jobs.ranks(PYTHON, 3, source=simulated.RANK % 2, MASTER_PORT="29505") as ranks:
        for rank in ranks:
            wait_until(lambda rank=rank: (support.dump(rank.pid)["threads"][0]["idle_seconds"] or 0) > 0.5, "it does not sleep")
        with Gateway(*(rank.pid for rank in ranks), **LIMITS) as gateway, browser.Browser(origin=gateway.url) as page:
            page.send("Page.addScriptToEvaluateOnNewDocument", source=watch)
            page.go(gateway.url + "?token=" + gateway.token)
            page.wait("document.querySelector('#findings')?.textContent.includes('never entered all_reduce')")
            said = page.value("[...told]")
            assert "judging 3 processes…" in said and not any("nothing is wrong" in text for text in said), said
