# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for people, from a target that may hold anything."""

RUNNING, GIL, UNREADABLE, CURRENT = "32", "33", "31", "1"


def safe(text):
    """Without what a terminal would obey, and with what is no text made visible."""
    if text is None:
        return "?"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escaped(char) for char in text)


def cut(text, most):
    """At most so many bytes of UTF-8, and … if there were more."""
    data = (text or "").encode("utf-8", "surrogateescape")
    if len(data) <= most:
        return text
    text = data[:most].decode("utf-8", "surrogateescape")
    while text and 0xdc80 <= ord(text[-1]) <= 0xdcff:  # a part of a character
        text = text[:-1]
    return text + "\u2026"


def escaped(char):
    code = ord(char)
    if 0xdc80 <= code <= 0xdcff:
        return "\\x%02x" % (code - 0xdc00)
    return char.encode("unicode_escape").decode()


class Painter:
    """Marks text with colours, or leaves it as it is."""

    def __init__(self, debugger):
        self.on = debugger.colored()

    def __call__(self, color, text):
        return "\x1b[%sm%s\x1b[0m" % (color, text) if self.on and text else text


def duration(seconds):
    """"2 m 10 s", "505 ms"."""
    if seconds < 1:
        return "%d ms" % round(seconds * 1000)
    whole = int(seconds)
    for unit, size, smaller, small in (("d", 86400, "h", 3600), ("h", 3600, "m", 60),
                                       ("m", 60, "s", 1)):
        if whole >= size:
            return "%d %s %d %s" % (whole // size, unit, whole % size // small, smaller)
    return "%.1f s" % seconds
