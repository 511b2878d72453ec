# SPDX-License-Identifier: GPL-3.0-or-later
# Runs in the target, with host, port and path given as names, and prints a word of what came of it
# with its details.
import sys
import threading


LISTENS = "0A"  # a state in /proc/net/tcp
LOOKS, PAUSE = 8, 0.05  # debugpy gives up within 0.2 s if it sees no thread that lives


def is_open(port):
    for name in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(name) as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except OSError:
            return True  # it cannot be seen
        if any(row[1].endswith(":%04X" % port) and row[3] == LISTENS for row in rows):
            return True
    return False


def keeps_listening(port):
    import time

    for _ in range(LOOKS):
        if not is_open(port):
            return False
        time.sleep(PAUSE)
    return True


def listen(host, port):
    import debugpy
    known = getattr(debugpy, "probing_endpoint", None)
    if known:
        return ("already",) + known
    # The thread that this runs on is none of the program's: it is not shown or stopped.
    thread = threading.current_thread()
    thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True
    endpoint = debugpy.listen((host, port)) + (debugpy.__version__,)
    if endpoint[1] and not keeps_listening(endpoint[1]):
        raise RuntimeError("it stopped to listen at once: no thread of the program is one that it can debug")
    debugpy.probing_endpoint = endpoint
    return ("listening",) + endpoint


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
