# SPDX-License-Identifier: GPL-3.0-or-later
"""`import probing` in the debugger: the Python package that belongs to this plugin, wherever it is,
with the module that it uses beside it, and nothing else from there."""

import importlib.util
import os
import sys

NAME = "probing"
STARTUP = "probing_startup"
# Beside the plugin's folder: of a build, of the wheel, and as installed.
PLACES = (("package", NAME), (), ("python", NAME))


def package_folder():
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    for place in PLACES:
        folder = os.path.join(top, *place)
        if os.path.exists(os.path.join(folder, "_version.py")):
            return folder
    return None


class Importer:
    """Among the finders of sys.meta_path, before the finders of other versions."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        folder = package_folder() if name in (NAME, STARTUP) else None
        if folder and name == STARTUP:
            return importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(folder), STARTUP + ".py"))
        return folder and importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])


def install(face):
    """The package's current() is what the @face holds from now on."""
    sys.modules[__name__.partition(".")[0]].face = face
    if Importer not in sys.meta_path:
        sys.meta_path.insert(0, Importer)
