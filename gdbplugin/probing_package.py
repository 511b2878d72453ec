# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a package of this folder, whatever it is called: `probing_debugger`, in the debugger."""

import importlib.util
import os
import sys

NAME = "probing_debugger"


def face(name):
    """A module of the package: the face of a debugger."""
    here = os.path.dirname(os.path.realpath(__file__))
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            NAME, os.path.join(here, "__init__.py"), submodule_search_locations=[here])
        package = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = package
        spec.loader.exec_module(package)
    return importlib.import_module(NAME + "." + name)
