# SPDX-License-Identifier: GPL-3.0-or-later
# Uncaught exceptions: a crash record is written before the program's own hook runs. The agent adds:
#   record(text)      writes it, unless crash records were turned off or this process has written its share
#   get_native_id()   gives the thread a stack for signal handlers: an overflow of its own can be recorded then
import sys


def describe(kind, value, trace):
    try:
        import traceback

        return "".join(traceback.format_exception(kind, value, trace))
    except Exception:
        return getattr(kind, "__name__", "an exception")


def note(kind, value, trace, where):
    try:
        if isinstance(kind, type) and issubclass(kind, Exception):
            record((where + describe(kind, value, trace)).encode("utf-8", "backslashreplace"))
    except Exception:
        pass


def wrap_main(below):
    def excepthook(kind, value, trace):
        note(kind, value, trace, "")
        below(kind, value, trace)

    return excepthook


def wrap_threads(below):
    def excepthook(args):
        name = getattr(args.thread, "name", "?")
        note(args.exc_type, args.exc_value, args.exc_traceback, "In thread %s:\n" % (name,))
        below(args)

    return excepthook


def watch_threads(threading, below):
    # Whichever is imported later takes both from the other one.
    if hasattr(threading, "excepthook"):
        threading.excepthook = wrap_threads(threading.excepthook)
    elif hasattr(below, "_excepthook"):
        below._excepthook = wrap_threads(below._excepthook)
    for module in (threading, below):
        if hasattr(module, "get_native_id"):
            module.get_native_id = get_native_id


sys.excepthook = wrap_main(sys.excepthook)
watch_threads(sys.modules.get("threading"), sys.modules.get("_thread"))
