# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions and files with names that a file format does not expect: each calls the next one, and the last
one uses a processor until the program is ended. Prints the names first, as JSON."""
import json
import threading

NAMES = [
    "plain", "qu\"ote's", "</script><script>fail()</script>", "<!--<script>", "]]>&amp;<b>",
    "semi;colon", "line\nfeed\r", "\x1b[2J\x07bell", "\udc80\ud800half", "\u202eback\u2066",
    "\u2028\u2029", "\ufffe\uffff", "=1+1", "back\\slash\\n", "%s%n%d", "ü→é😀", "tab\there",
    "(in parens:12)", "cut\0here", "x" * 300, " 42", "",
]


def renamed(function, name):
    code = function.__code__
    names = {"co_name": name, "co_filename": "/tmp/%s.py" % name}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = name
    function.__code__ = code.replace(**names)
    return function


def burner():
    def burn():
        while True:
            sum(range(100))
    return burn


def caller(function):
    def call():
        function()
    return call


def main():
    function = renamed(burner(), NAMES[-1])
    for name in reversed(NAMES[:-1]):
        function = renamed(caller(function), name)
    threading.current_thread().name = "</script>;\"bad\nname\x1b"
    print(json.dumps(NAMES), flush=True)
    function()


main()
