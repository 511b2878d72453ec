# SPDX-License-Identifier: GPL-3.0-or-later
"""A page that stays open while its gateway is restarted, with the same token and with another."""
import json

import pytest

import support
from gateway_client import Gateway
from test_gateway_fields import FAST
from web_page import MARKS, PANELS, Page

pytestmark = MARKS
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
TOKEN, OTHER = "a-token-for-the-tests", "another-token-with-a-+-and-a-%41"
FAILURES = "JSON.stringify([...document.querySelectorAll('main .failure')].map((one) => one.innerText))"
# A panel has read what it shows, or cannot.
SETTLED = "!!document.querySelector('main section') && !document.body.innerText.includes('loading…') && " \
          "(!document.body.innerText.includes('reading…') || !!document.querySelector('main .failure'))"
BEGIN = "import threading, time; threading.Thread(target=time.sleep, args=(9999,), name=%r, daemon=True).start()"


@pytest.fixture
def program():
    with support.Program([NEWEST.exe, support.HERE / "programs" / "web_debugged.py"]) as running:
        assert running.line() == "ready"
        yield running


def serve(program, before=None, token=TOKEN):
    address = before.host if before else "127.0.0.1:0"
    return Gateway("--allow-write", program.pid, address=address, PROBING_AUTH_TOKEN=token)


def open_page(gateway):
    page = Page(gateway)
    page.send("Page.addScriptToEvaluateOnNewDocument", source=FAST)
    page.go(gateway.url)
    return page


def begin_thread(gateway, program, name):
    """What only a page that is up to date can show."""
    assert gateway.ask("/v1/targets/%d/eval" % program.pid, {"code": BEGIN % name}).status == 200


def test_each_panel_goes_on(program):
    gateway = serve(program)
    with open_page(gateway) as page, open_page(gateway) as new:
        for panel in PANELS:
            with gateway:
                page.show(panel, target=program.pid)
                page.wait("!!document.querySelector('main section')")
                if panel == "inspect":
                    page.value("document.querySelector('[name=expression]').focus()")
                    page.type("typed before")
                page.value("globalThis.kept = true")
                gateway.stop()
                page.wait("!!document.querySelector('#gone')")
            gateway = serve(program, gateway)
            page.wait("!document.querySelector('#gone')")
            # It shows no other errors than a page that is opened now.
            new.go(gateway.url)
            new.show(panel, target=program.pid)
            new.wait(SETTLED)
            page.wait("%s === %s" % (FAILURES, json.dumps(new.value(FAILURES))), panel)
            assert page.value("globalThis.kept")
            if panel == "inspect":
                assert page.value("document.querySelector('[name=expression]').value") == "typed before"
    gateway.stop()


def test_stacks_come_again(program):
    with serve(program) as gateway, open_page(gateway) as page:
        page.sees("keeper")
        for turn in range(2):
            gateway.stop()
            page.wait("!!document.querySelector('#gone')")
            page.sees("keeper", "the gateway does not answer")
            gateway = serve(program, gateway)
            with gateway:
                name = "newcomer %d" % turn
                begin_thread(gateway, program, name)
                page.sees(name)
                assert not page.value("document.querySelector('main > .failure')")
                gateway.stop()


def test_another_token_is_asked_for(program):
    with serve(program) as gateway, open_page(gateway) as page:
        page.show("inspect", target=program.pid)
        page.wait("!!document.querySelector('[name=expression]')")
        page.value("document.querySelector('[name=expression]').focus()")
        page.type("shelf")
        page.show("activity", target=program.pid)
        page.sees("keeper")
        gateway.stop()
        with serve(program, gateway, OTHER) as other:
            page.wait("!!document.querySelector('#locked')")
            page.sees("keeper", "another token")
            for token, wrong in (("no-such-token-at-all", True), (OTHER, False)):
                page.value("document.querySelector('[name=token]').focus(), document.querySelector('[name=token]').select()")
                page.type(token)
                page.push("#login")
                page.wait("document.body.innerText.includes('that token is wrong')" if wrong
                          else "!document.querySelector('#locked')")
            begin_thread(other, program, "newcomer")
            page.sees("newcomer")
            # Nothing but the cookie has it, which no script can read.
            assert OTHER not in page.value("location.href + document.cookie + document.documentElement.outerHTML")
            page.show("inspect", target=program.pid)
            page.wait("document.querySelector('[name=expression]')?.value === 'shelf'")
            assert not [error for error in page.errors if "entry" not in error], page.errors


def test_a_login_in_another_page_is_enough(program):
    with serve(program) as gateway, open_page(gateway) as page:
        page.sees("keeper")
        gateway.stop()
        with serve(program, gateway, OTHER):
            page.wait("!!document.querySelector('#locked')")
            page.value("fetch('/?token=' + encodeURIComponent(%s)).then((one) => one.status)" % json.dumps(OTHER))
            page.wait("!document.querySelector('#locked')")
            page.sees("keeper")
