# SPDX-License-Identifier: GPL-3.0-or-later
# Runs in the target, with host, port and path given as names, and prints a word of what came of it
# with its details.
import sys
import threading


def listen(host, port):
    import debugpy
    known = getattr(debugpy, "probing_endpoint", None)
    if known:
        return ("already",) + known
    # The thread that this runs on is none of the program's: it is not shown or stopped.
    thread = threading.current_thread()
    thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True
    debugpy.probing_endpoint = debugpy.listen((host, port)) + (debugpy.__version__,)
    return ("listening",) + debugpy.probing_endpoint


def start(host, port, path):
    """Uses the program's own debugpy, or that in the folder path."""
    if path:
        sys.path.insert(0, path)
    try:
        return "%s %s %d %s" % listen(host, port)
    except ImportError as error:
        absent = getattr(error, "name", None) == "debugpy" and not path
        return "absent" if absent else "broken %s" % error
    except Exception as error:
        return "failed %s" % error
    finally:
        if path:
            sys.path.remove(path)


sys.stdout.write(start(host, port, path))
