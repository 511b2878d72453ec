# SPDX-License-Identifier: GPL-3.0-or-later
"""A pid that is used again: what is shown is of the process that was chosen, or says that this has ended."""
import contextlib
import json
import os
import signal

import pytest

import support
from gateway_client import Gateway, wait_until
from test_events_of_gateway import Stream
from web_page import MARKS, Page

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
SCRIPT = "import time\n%s = [bytearray(1000) for _ in range(20000)]\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.1)\n"


def number():
    """A pid that nobody has for a while: it was had a moment ago."""
    with support.Program(["/usr/bin/python3", "-c", "pass"]) as program:
        program.wait()
        return program.pid


@contextlib.contextmanager
def named(build, folder, pid, name):
    """The program NAME.py as process @pid."""
    script = folder / (name + ".py")
    script.write_text(SCRIPT % name)
    with support.Program([build.program("with_pid"), pid, "/usr/bin/python3", str(script)]) as program:
        assert program.line() == "ready"
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            program.wait()


def id_of(gateway, pid):
    """The id of the process that has the pid now. A list is shared by all who ask within a moment."""
    id_ = support.instance(pid)
    wait_until(lambda: id_ in [one["id"] for one in gateway.ask("/v1/targets").json["targets"]], "it is not listed")
    return id_


def expect_ended(pid, answer):
    assert answer.status == 404, answer
    assert answer.error["code"] == "no_process" and "process %d has ended" % pid in answer.error["message"], answer


def test_requests_are_of_the_process_that_was_listed(build, tmp_path):
    pid = number()
    with Gateway() as gateway:
        with named(build, tmp_path, pid, "first"):
            before = id_of(gateway, pid)
            stream = Stream(gateway, pid, "?every=0.2")
            assert stream.event()[0] == "stacks"
            # A pid alone is whatever process has it now, and a recording is of that one for good.
            made = gateway.ask("/v1/targets/%d/profiles" % pid, {"duration": 0.2})
            assert made.status == 201 and made.json["target"] == before and "first.py" in made.json["argv"][-1], made
            assert gateway.query(before, "SELECT 1 AS x") == [{"x": 1}]
        with named(build, tmp_path, pid, "second"):
            after = id_of(gateway, pid)
            assert after != before
            expect_ended(pid, gateway.ask("/v1/targets/%s/stacks" % before))
            expect_ended(pid, gateway.ask("/v1/targets/%s/memory" % before))
            expect_ended(pid, gateway.ask("/v1/targets/%s/recorders" % before))
            expect_ended(pid, gateway.ask("/v1/targets/%s/query" % before, {"sql": "SELECT count(*) FROM python.threads"}))
            events = iter(stream.event, None)
            [said] = [said for name, said in events if name == "failure"]
            assert said["error"]["code"] == "no_process", said
            for id_ in (pid, after):
                argv = gateway.ask("/v1/targets/%s/stacks" % id_).json["target"]["argv"]
                assert argv[-1].endswith("second.py"), argv


def test_named_processes_are_told_from_later_ones(build, tmp_path):
    pid = number()
    with contextlib.ExitStack() as later:
        with named(build, tmp_path, pid, "first"):
            gateway = later.enter_context(Gateway(pid))
            [target] = gateway.ask("/v1/targets").json["targets"]
            assert not target["ended"] and gateway.ask("/v1/overview").json["targets"][0]["id"] == target["id"]
        later.enter_context(named(build, tmp_path, pid, "second"))
        # A list is shared by all who ask within a moment.
        wait_until(lambda: gateway.ask("/v1/targets").json["targets"][0]["ended"], "it is not told")
        [told] = gateway.ask("/v1/targets").json["targets"]
        assert told["id"] == target["id"] and "argv" not in told, told
        for id_ in (pid, target["id"]):
            expect_ended(pid, gateway.ask("/v1/targets/%s/stacks" % id_))
        wait_until(lambda: gateway.ask("/v1/overview").json["targets"][0]["ended"], "it is not told")
        [seen] = gateway.ask("/v1/overview").json["targets"]
        assert seen["id"] == target["id"] and "second.py" not in json.dumps(seen)


@MARKS[0]
@MARKS[1]
@pytest.mark.parametrize("panel", ["memory", "time", "activity", "sql"])
def test_a_panel_stays_with_its_process(build, tmp_path, panel):
    pid = number()
    with Gateway() as gateway, Page(gateway) as page:
        with named(build, tmp_path, pid, "first"):
            page.show(panel, target=pid)
            page.wait("location.hash.includes('target=%s')" % id_of(gateway, pid))
            page.sees("first.py", str(pid))
            # The number that people know is what is shown.
            assert "%d-" % pid not in page.text()
            if panel == "memory":
                page.sees("bytearray")
        with named(build, tmp_path, pid, "second"):
            page.wait("/has ended|\\(ended\\)/.test(document.querySelector('header').innerText + document.querySelector('main').innerText)")
            page.wait("document.querySelector('h1').innerText.includes('first.py')")
            assert "second.py" not in page.value("document.querySelector('h1').innerText + document.querySelector('main').innerText")
            page.sees("has ended")
            # The list offers the new one, under its own name.
            page.wait("[...document.querySelectorAll('#target option')].some((one) => one.innerText.includes('second.py %d'))" % pid)
        # That the answer was 404 is in the browser's log.
        assert not [error for error in page.errors if error.get("entry", {}).get("source") != "network"], json.dumps(page.errors)
