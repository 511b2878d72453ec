# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws the output of terminal commands as an SVG image.

draw() takes text with the ANSI colours that probing uses. Unknown escape sequences are an error, so
that a new colour is not lost. The result depends on nothing but the text.
"""

import html
import re

# ANSI parameter → (CSS class, colour on a light page, on a dark one, more)
STYLES = {
    "32": ("run", "#116329", "#7ee787", ""),
    "1;33": ("gil", "#7d4e00", "#f2cc60", ";font-weight:bold"),
    "31": ("bad", "#a40e26", "#ff7b72", ""),
    "36": ("func", "#0550ae", "#79c0ff", ""),
    "2": ("dim", "#59636e", "#8b949e", ""),
    "1": ("command", "#000000", "#ffffff", ";font-weight:bold"),
}
COLUMN, LINE, MARGIN, BAR = 8.4, 18, 16, 30

HEAD = """<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" \
viewBox="0 0 {width:.0f} {height}" role="img" aria-label="{label}">
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<style>text{{font:14px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#1f2328;\
white-space:pre}}rect{{fill:#f6f8fa}}{light}@media(prefers-color-scheme:dark){{text{{fill:#c9d1d9}}\
rect{{fill:#0d1117}}{dark}}}</style>
<rect width="100%" height="100%" rx="8"/>
<circle cx="20" cy="18" r="6" fill="#ff5f56"/><circle cx="40" cy="18" r="6" fill="#ffbd2e"/>\
<circle cx="60" cy="18" r="6" fill="#27c93f"/>
"""


def spans(line):
    """[(CSS class or None, text)] of one line."""
    found, current = [], None
    for part in re.split(r"(\033\[[\d;]*m)", line):
        code = re.fullmatch(r"\033\[([\d;]*)m", part)
        if not code:
            found += [(current, part)] if part else []
        elif code[1] in ("", "0"):
            current = None
        else:
            current = STYLES[code[1]][0]
    assert not any("\033" in text for _, text in found), "unknown escape sequence in %r" % line
    return found


def drawn(line):
    """The line as SVG. Runs of text follow each other, so no font has to be measured."""
    return "".join('<tspan class="%s">%s</tspan>' % (name, html.escape(text, quote=False)) if name
                   else html.escape(text, quote=False) for name, text in spans(line))


def draw(text, label):
    lines = text.rstrip("\n").split("\n")
    columns = max(len(re.sub(r"\033\[[\d;]*m", "", line)) for line in lines)
    light = "".join(".%s{fill:%s%s}" % (name, light, more) for name, light, _, more in STYLES.values())
    dark = "".join(".%s{fill:%s}" % (name, dark) for name, _, dark, _ in STYLES.values())
    svg = HEAD.format(width=columns * COLUMN + 2 * MARGIN, label=html.escape(label), light=light, dark=dark,
                      height=BAR + MARGIN + len(lines) * LINE + MARGIN // 2)
    for number, line in enumerate(lines):
        svg += '<text x="%d" y="%d" xml:space="preserve">%s</text>\n' % (
            MARGIN, BAR + MARGIN + number * LINE, drawn(line))
    return svg + "</svg>\n"


def text_of(svg):
    """[(text, CSS classes)] of each line of a drawing, to compare two of them."""
    return [(html.unescape(re.sub(r"</?tspan[^>]*>", "", body)), re.findall(r'class="(\w+)"', body))
            for body in re.findall(r"<text [^>]*>(.*?)</text>", svg)]
