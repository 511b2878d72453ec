# SPDX-License-Identifier: GPL-3.0-or-later
"""The request that each thread serves (WSGI and ASGI: Django, Flask, FastAPI)."""

import probing


def request_of(thread):
    """The outermost one: frameworks pass it on inwards."""
    for frame in reversed(thread.frames):
        for name, method, path in (("environ", "REQUEST_METHOD", "PATH_INFO"),
                                   ("scope", "method", "path")):
            if name not in frame.locals:
                continue
            try:
                found = frame.locals[name]
                return "%s %s" % (found[method], found[path])
            except (probing.NotThere, probing.NeedsCode):
                continue
    return None


count = 0
for thread in probing.current().threads():
    try:
        request = request_of(thread)
    except probing.Gone:
        request = "something, and went on while it was read"
    if request:
        count += 1
        frame = thread.frames[0]
        print("%d %s serves %s, in %s %s:%s, %s" % (
            thread.tid, thread.name, request, frame.qualname or frame.func, frame.file, frame.line,
            thread.waits_for.text or thread.state))
if not count:
    print("No thread serves a request.")
