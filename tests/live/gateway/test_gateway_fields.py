# SPDX-License-Identifier: GPL-3.0-or-later
"""What is typed into the page, key by key, while its panels are drawn again and again."""
import json
import re

import pytest

import support
from served_program import gateway, program  # noqa: F401 (fixtures)
from web_page import MARKS, PANELS, Page

pytestmark = MARKS
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in (support.ROOT / "gateway/web/src").glob("*.tsx")}
# The same page with a faster clock: what is asked for every few seconds is asked for at once.
FAST = "const real = setTimeout; window.setTimeout = (call, ms, ...more) => real(call, Math.min(ms || 0, 50), ...more);" \
       "performance.setResourceTimingBufferSize(1e6)"
ASKED = "performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch').length"
FIELDS = "[...document.querySelectorAll('input:not([type=checkbox]), textarea')].map((one) => " \
         "one.id ? '#' + one.id : `[name=${one.name}]`)"
EDITOR = "document.querySelector('#editor').shadowRoot.querySelector('.cm-content')"


@pytest.fixture(scope="module")
def page(gateway):
    with Page(gateway) as opened:
        opened.send("Page.addScriptToEvaluateOnNewDocument", source=FAST)
        opened.go(gateway.url)
        yield opened


def drawn(page, times=2):
    """Waits until the page got that many more answers, and was drawn with them."""
    before = page.value(ASKED)
    page.wait("%s >= %d" % (ASKED, before + times))
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def type_slowly(page, field, text):
    """Replaces what the field has. @field is an expression."""
    # A dialog is opened after it was drawn.
    page.wait("(%s.focus(), %s.getRootNode().activeElement === %s)" % (3 * (field,)))
    page.value("getSelection().selectAllChildren(%s), %s.select?.()" % (2 * (field,)))
    for letter in text:
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key=letter, **({"text": letter} if kind == "keyDown" else {}))
        drawn(page)


def one(selector):
    return "document.querySelector(%s)" % json.dumps(selector)


def show(page, program, panel):
    page.show(panel, target=program.pid)
    page.wait("document.querySelector('main').dataset.panel === %s"
              "&& !!document.querySelector('main section')" % json.dumps(panel))


def text_for(page, field):
    return "123" if page.value("%s.type === 'number'" % field) else "a.b[0] ?&#+%"


@pytest.mark.parametrize("panel", PANELS)
def test_a_field_has_what_was_typed(page, program, panel):
    show(page, program, panel)
    for selector in page.value(FIELDS):
        field = one(selector)
        text = text_for(page, field)
        type_slowly(page, field, text)
        assert page.value(field + ".value") == text, selector
        # Nor when something else has the focus.
        page.value("%s.blur()" % field)
        drawn(page)
        assert page.value(field + ".value") == text, selector
    if panel == "sql":
        type_slowly(page, EDITOR, "SELECT 42")
        assert page.value(EDITOR + ".innerText").strip() == "SELECT 42"


def test_the_palette_has_what_was_typed(page, program):
    show(page, program, "inspect")
    page.push("#go")
    type_slowly(page, one("#palette"), "mem")
    assert page.value("document.querySelector('#palette').value") == "mem"
    page.press("Enter")
    page.wait("location.hash.startsWith('#/memory')")


def test_no_field_is_left_out(page, program):
    """All are made in one place, and are on a panel that the test above opens."""
    found = set()
    for panel in PANELS:
        show(page, program, panel)
        found |= {re.sub(r"\W", "", selector.replace("name=", "")) for selector in page.value(FIELDS)}
    made = [tag for text in SOURCES.values() for tag in re.findall(r"<Field\b(.*?)/>", text, re.S)]
    # A token is asked for when there is another one: test_gateway_restart.py. A title: test_dashboard_page.py. A note of a
    # recording: test_gateway_page.py. A condition: test_page_debugger.py.
    assert found | {"palette", "token", "title", "name", "note", "condition"} == {re.search(r'\b(?:id|name)="(\w+)"', tag)[1] for tag in made}
    for name, text in SOURCES.items():
        others = [tag for tag in re.findall(r"<(?:input|textarea)\b.*?/>", text, re.S) if 'type="checkbox"' not in tag]
        assert name == "field.tsx" or not others, others


@pytest.mark.parametrize("panel, selector", [
    ("inspect", "[name=expression]"), ("profile", "[name=duration]"), ("debug", "[name=max]"), ("debug", "[name=port]"),
    ("console", "#code")])
def test_it_is_there_after_another_panel(page, program, panel, selector):
    show(page, program, panel)
    field = one(selector)
    text = text_for(page, field).rstrip("?&#+% ") + "4"
    type_slowly(page, field, text)
    show(page, program, "activity")
    show(page, program, panel)
    drawn(page)
    assert page.value(field + ".value") == text


def test_a_query_is_there_after_another_panel(page, program):
    show(page, program, "sql")
    type_slowly(page, EDITOR, "SELECT 43")
    show(page, program, "activity")
    show(page, program, "sql")
    page.wait(EDITOR + ".innerText.trim() === 'SELECT 43'")


def test_what_is_typed_is_what_is_done(page, program, gateway):
    show(page, program, "profile")
    type_slowly(page, one("[name=duration]"), "321")
    page.push("#record")
    page.wait("document.querySelectorAll('.recordings li').length === 1")
    [made] = gateway.ask("/v1/profiles").json["profiles"]
    assert made["duration"] == 321
    assert gateway.ask("/v1/profiles/%s/stop" % made["id"], b"", "POST").status == 200
    show(page, program, "inspect")
    type_slowly(page, one("[name=expression]"), "shelf")
    page.press("Enter")
    page.sees("bytearray")
    # The field keeps the focus, and follows the address.
    assert page.focused("e.name") == "expression"
    page.value("history.back()")
    page.wait("!location.hash.includes('shelf')")
    page.wait("document.querySelector('[name=expression]').value !== 'shelf'")


def test_a_pause_is_as_long_as_was_typed(page, program, gateway):
    show(page, program, "debug")
    type_slowly(page, one("[name=max]"), "299")
    page.push("#hold")
    page.wait("!!document.querySelector('#resume')")
    page.push("#resume")
    page.wait("!!document.querySelector('#hold')")
    drawn(page)
    # A list that was read before may still call it paused.
    page.wait("document.querySelector('[name=max]')?.value === '299'")
    assert '/pause {"max":"299"' in gateway.stop()[1]
