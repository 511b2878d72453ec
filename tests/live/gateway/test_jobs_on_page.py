# SPDX-License-Identifier: GPL-3.0-or-later
"""A job on the page's first view: one row with its ranks, the verdict above it, and those that are gone."""
import jobs
import simulated
from gateway_client import Gateway
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
        page.wait("location.hash === '#/job?target=%d'" % hung[1])
        page.show("overview")
        page.push(".ranks a", 2)
        page.wait("location.hash === '#/activity?target=%d'" % hung[2])
        assert not page.errors


def test_a_rank_that_is_gone_stays():
    with jobs.ranks(PYTHON, 3, source=simulated.RANK % 2, MASTER_PORT="29502") as ranks, \
            Gateway(*(rank.pid for rank in ranks), **LIMITS) as gateway, Page(gateway) as page:
        page.show("overview")
        page.wait("document.querySelectorAll('.ranks a').length === 3")
        ranks[2].kill()
        page.wait("document.querySelector('.ranks .gone')?.textContent.startsWith('2 ended ')")
        page.sees("1 gone")
