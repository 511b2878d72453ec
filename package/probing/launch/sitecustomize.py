# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing launch` puts this folder first in $PYTHONPATH, so that Python imports this file at start.

It starts the agent, takes out of sys.path and the environment what the command put there, and hands
over to the sitecustomize of the program, if it has one. Python 2 can read it, too.
"""

import os
import sys

folder = os.path.dirname(os.path.abspath(__file__))
own = sys.modules.pop("sitecustomize")  # Python 2 would clear an unused module while it runs


def clean():
    """The program sees neither this folder nor, unless its children are to, the variables."""
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    sys.path_importer_cache.pop(folder, None)
    mode, _, agent = os.environ.get("PROBING_LAUNCH", "").partition(":")
    if mode == "1":
        del os.environ["PROBING_LAUNCH"]
        first, _, rest = os.environ.get("PYTHONPATH", "").partition(os.pathsep)
        if first == folder and rest:
            os.environ["PYTHONPATH"] = rest
        elif first == folder:
            del os.environ["PYTHONPATH"]
    return mode, agent


def start():
    """probing_startup.py lies beside the package, whose folder need not be in sys.path."""
    mode, agent = clean()
    if mode not in ("1", "2"):
        return
    try:
        if sys.version_info[0] < 3:
            raise RuntimeError("Python 2 can have no agent")
        path = os.path.join(os.path.dirname(os.path.dirname(folder)), "probing_startup.py")
        startup = {"__name__": "probing_startup", "__file__": path}
        with open(path, "rb") as file:
            exec(compile(file.read(), path, "exec"), startup)
        startup["launch"](agent, mode == "2")
    except Exception as error:
        if sys.stderr is not None:
            sys.stderr.write("probing: %s\n" % error)


start()
import sitecustomize  # noqa: E402, F401  the program's own, or the ImportError that site expects
