# SPDX-License-Identifier: GPL-3.0-or-later
"""A page that is open for hours: its memory does not grow with the times it asks. Its timers run faster here."""
import json

import support
from gateway_client import Gateway
from web_page import MARKS, Page

pytestmark = MARKS

FASTER = 500
# Polls of the overview, one each 2 s. The heap was 1.53 MB after 4,000 of them, and 1.67 MB after all.
EIGHT_HOURS = 14400
# Counts what is asked for, and what was answered.
HASTE = """
(() => {
    const [later, ask] = [window.setTimeout, window.fetch];
    window.setTimeout = (call, time, ...more) => later(call, (time ?? 0) / %d, ...more);
    window.polls = 0;
    window.fetch = async (...what) => {
        const answer = await ask(...what);
        window.polls++;
        return answer;
    };
})()""" % FASTER
MOST_GROWN = 300_000  # bytes, over all polls: answers that were kept would be ten times as much


def test_memory_is_flat():
    polls = support.count(400, EIGHT_HOURS)
    with support.Program(["/usr/bin/python3", "-c", "print('ready', flush=True); input()"]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            page.sees(str(program.pid))
            page.value(HASTE)
            page.show("overview")

            def heap_after(count):
                page.wait("window.polls >= %d" % count, "the page asks no more", timeout=1500)
                page.send("HeapProfiler.collectGarbage")
                return page.send("Runtime.getHeapUsage")["usedSize"]

            before, after = heap_after(polls // 4), heap_after(polls)
            assert after - before < MOST_GROWN, (before, after)
            assert not page.errors, json.dumps(page.errors)
