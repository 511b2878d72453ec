# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a gateway, with functions for a user's actions."""
import json
import urllib.parse

import pytest

import browser
import support

BUILT = (support.ROOT / "gateway/web/dist" / "index.html").exists()
MARKS = [
    pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed"),
    pytest.mark.skipif(not BUILT, reason="the page was not built: 'make web' builds it, with npm"),
]
PANELS = ("overview", "activity", "profile", "training", "memory", "inspect", "sql", "console", "debug", "time", "dashboard", "server", "job")


class Page(browser.Browser):
    def __init__(self, gateway, **options):
        super().__init__(origin=gateway.url, **options)
        self.gateway = gateway
        self.go(gateway.url + "?token=" + gateway.token)

    def show(self, panel, **values):
        self.value("location.hash = %s" % json.dumps("#/%s?%s" % (panel, urllib.parse.urlencode(values))))

    def text(self):
        return self.value("document.body.innerText")

    def sees(self, *texts):
        for text in texts:
            self.wait("document.body.innerText.includes(%s)" % json.dumps(text))

    def push(self, selector, index=0):
        find = "document.querySelectorAll(%s)[%d]" % (json.dumps(selector), index)
        self.wait("!!%s && !%s.disabled" % (find, find))
        self.value(find + ".click()")

    def type(self, text):
        self.send("Input.insertText", text=text)

    def focused(self, expression):
        """An expression about the element with the focus, `e`."""
        return self.value("((e) => %s)(document.activeElement)" % expression)


@pytest.fixture(scope="module")
def opened(gateway):
    with Page(gateway) as page:
        yield page


@pytest.fixture
def page(opened):
    opened.errors.clear()
    yield opened
    assert not opened.errors, json.dumps(opened.errors)
