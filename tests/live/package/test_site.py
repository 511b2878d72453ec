# SPDX-License-Identifier: GPL-3.0-or-later
"""`make site`: all pages, whose links lead somewhere, and which ask no other machine for anything."""

import pathlib
import re
import urllib.parse

import pytest
import support

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILT = pathlib.Path(support.BINARY).parent / "site" / support.VERSION
pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="not built: make site")
# What a browser fetches by itself.
FETCHED = re.compile(r"<(?:script|img|iframe|source|embed)\b[^>]*\bsrc(?:set)?=[\"']?([^\"' >]+)|<link\b(?![^>]*rel=[\"']?canonical)[^>]*\bhref=[\"']?([^\"' >]+)")
LEADS = re.compile(r"<a\b[^>]*\bhref=[\"']?([^\"' >]+)")


def pages():
    return {path: path.read_text(encoding="utf-8") for path in BUILT.rglob("*.html")}


def test_all_pages_are_there():
    names = {str(path.relative_to(BUILT)) for path in pages()}
    assert {"index.html", "commands.html", "flame-graph.html", "tours/hangs.html", "tours/slow.html", "tours/grows.html",
            "tables/python.html", "CHANGELOG.html"} <= names
    assert (BUILT.parent / "versions.json").exists() and support.VERSION in (BUILT.parent / "index.html").read_text()


def test_nobody_else_is_asked():
    found = {(path.name, "".join(address)) for path, text in pages().items() for address in FETCHED.findall(text)}
    assert found and not [each for each in found if re.match("(https?:)?//", each[1])]


def test_links_lead_somewhere():
    broken = []
    for path, text in pages().items():
        for address in LEADS.findall(text):
            place = address.partition("#")[0].partition("?")[0]
            if place and not re.match("[a-z]+:|//", place) and not (path.parent / place).exists() and path.name != "404.html":
                broken.append((path.name, address))
    assert not broken


def test_what_is_shown_is_there():
    found = [(path, "".join(address)) for path, text in pages().items() for address in FETCHED.findall(text)
             if path.name != "404.html"]
    assert any(address.endswith("-dark.png") for _, address in found)
    assert not [(path.name, address) for path, address in found
                if not re.match("[a-z]+:|//", address) and not (path.parent / address.partition("?")[0]).exists()]


def test_links_lead_to_headings():
    """GitHub names them otherwise: with as many dashes as there are blanks and dashes."""
    texts = {path.resolve(): text for path, text in pages().items()}
    broken = []
    for path, text in texts.items():
        for address in LEADS.findall(text):
            place, _, anchor = address.partition("#")
            page = (path.parent / place).resolve() if place else path
            if anchor and page in texts and not re.search("\\bid=[\"']?%s[\"' >]" % re.escape(urllib.parse.unquote(anchor)),
                                                          texts[page]):
                broken.append((path.name, address))
    assert not broken


def test_each_command_has_its_help():
    text = (BUILT / "commands.html").read_text(encoding="utf-8")
    for command in ("why", "dump", "query", "performance", "cluster"):
        assert "Usage: probing" in text and 'id="%s"' % command in text, command
