# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of an inference server, in Chromium: what keeps its requests, where they are, how old."""
import json
import sys

import pytest

import support
from gateway_client import Gateway
from web_page import MARKS, Page

sys.path.append(str(support.HERE / "inference"))
import test_server as servers  # noqa: E402

pytestmark = MARKS


@pytest.fixture(scope="module", name="pids")
def fixture_pids():
    with servers.server("kv") as pids:
        yield pids


def all_of(pids):
    return [pids["api"], pids["core"], *pids["workers"]]


def test_the_panel_says_what_keeps_the_requests(pids, tmp_path):
    with Gateway(*map(str, all_of(pids)), XDG_STATE_HOME=str(tmp_path)) as gateway:
        told = gateway.ask("/v1/targets/%d/server" % pids["core"]).json
        assert {one["pid"] for one in told["processes"]} == set(all_of(pids)), told
        [core] = [one for one in told["processes"] if one["role"] == "scheduler"]
        # Each request is in one part of the ages, but those whose age is not known.
        assert sum(part["requests"] for part in core["ages"]) == core["requests"] == 16, core
        assert core["ages"][-1]["below_seconds"] is None and core["kv_free"] == 0, core
        with Page(gateway) as page:
            # It is offered, from each of the processes, and the sentence is that of the command.
            page.show("activity", target=pids["workers"][0])
            page.wait("[...document.querySelectorAll('nav a')].some((a) => a.textContent === 'Server')")
            page.show("server", target=pids["api"])
            page.sees("no request can be admitted to engine core (%d)" % pids["core"], "worker TP1", "12 waiting", "0 of 1,000")
            page.sees("Requests by age", "Requests by queue", "KV cache in use", "Waits between processes")
            page.wait("document.querySelectorAll('[aria-label=Server] .uplot').length === 3")
            # A worker that looks for a message sleeps for most of the time, and is read once.
            page.wait("/a message in ring|No process waits for another one/.test(document.body.innerText)")
            assert not page.errors, json.dumps(page.errors)


def test_parts_that_are_not_served(pids, tmp_path):
    """Of waits of processes that cannot be asked nothing is said; they are asked again on request, not by themselves."""
    asked = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/%d/')).length" % pids["api"]
    with Gateway(str(pids["core"]), XDG_STATE_HOME=str(tmp_path)) as gateway, Page(gateway) as page:
        page.show("server", target=pids["core"])
        page.sees("Waits between processes", "%d was left out" % pids["api"])
        assert "No process waits" not in page.text()
        before = page.value(asked)
        page.push("[aria-label=Server] .tools button")
        page.wait("%s > %d" % (asked, before))
        page.sees("%d was left out" % pids["api"])


def test_another_process_has_no_such_panel(newest, tmp_path):
    with support.Program([newest.exe, "-c", "import time; print(flush=True); time.sleep(600)"], env=newest.env) as program:
        program.line()
        with Gateway(str(program.pid), XDG_STATE_HOME=str(tmp_path)) as gateway, Page(gateway) as page:
            assert gateway.ask("/v1/targets/%d/server" % program.pid).status == 404
            page.show("activity", target=program.pid)
            page.sees("Activity", "Memory")
            page.show("server", target=program.pid)
            page.sees("no process of an inference server")
