# SPDX-License-Identifier: GPL-3.0-or-later
"""What gdb loads: `source …/probing-gdb.py`. Its folder becomes the package `probing_debugger`."""

import importlib.util
import os
import sys


def _load():
    here = os.path.dirname(os.path.realpath(__file__))
    name = "probing_debugger"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(here, "__init__.py"), submodule_search_locations=[here])
        package = importlib.util.module_from_spec(spec)
        sys.modules[name] = package
        spec.loader.exec_module(package)
    importlib.import_module(name + ".gdb_face").install()


_load()
