# SPDX-License-Identifier: GPL-3.0-or-later
"""Probing: shows what running Python programs are doing.

Importing this package imports nothing else: each name is loaded when it is first used.
"""

import sys as _sys

from probing._version import VERSION as __version__

# Name of this package -> module that defines it.
_HOMES = {
    "Error": "probing._errors",
    "Gone": "probing._errors",
    "NeedsCode": "probing._errors",
    "NotThere": "probing._errors",
    "Program": "probing.target",
    "Value": "probing.value",
    "attach": "probing.target",
    "break_py": "probing.target",
    "attributes": "probing.value",
    "command": "probing.extend",
    "config": "probing._config",
    "current": "probing.target",
    "events": "probing.events",
    "event": "probing._events",
    "get": "probing.value",
    "init": "probing._agent",
    "load_entry_points": "probing._load",
    "printer": "probing.extend",
    "query": "probing._rows",
    "rule": "probing.extend",
    "set_role": "probing._config",
    "span": "probing._events",
    "step": "probing._events",
    "stop": "probing._agent",
    "table": "probing.extend",
    "wait": "probing.extend",
    "watch": "probing._watch",
    "StartError": "probing_startup",
}
__all__ = sorted(_HOMES)


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError("module 'probing' has no attribute '%s'" % name)
    __import__(home)
    module = _sys.modules[home]
    value = globals()[name] = module if home == "probing." + name else getattr(module, name)
    return value


def pytest_configure(config):
    """`pytest -p probing`: SIGTERM fails the running test instead of killing pytest."""
    from probing import _pytest  # pylint: disable=import-outside-toplevel

    config.pluginmanager.register(_pytest.Plugin(), "probing-session")


def _warn_of_namesake():
    """Another tool's package has this name, too: pip may have put both into this folder, or it into another one."""
    import posix  # pylint: disable=import-outside-toplevel

    for folder, name in [(__path__[0], "_core.abi3.so")] + [
            (folder, "probing_hook.py") for folder in _sys.path if str(folder).endswith(("site-packages", "dist-packages"))]:
        try:
            posix.stat("%s/%s" % (folder, name))
        except (OSError, ValueError):
            continue
        import warnings  # pylint: disable=import-outside-toplevel

        warnings.warn("%s has files of another tool named probing: 'pip uninstall probing', and install this one again"
                      % folder, RuntimeWarning, stacklevel=3)
        return


_warn_of_namesake()


def __dir__():
    return sorted(set(globals()) | set(_HOMES))


# Modules have no __getattr__() of their own before Python 3.7.
if _sys.version_info < (3, 7):
    for _name in __all__:
        __getattr__(_name)
    del _name
