# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheel of `make wheel`, installed into a clean virtual environment of each interpreter."""

import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest
import support

PROGRAM = pathlib.Path(os.environ["PROBING_BINARY"])


@pytest.fixture(scope="session")
def wheel():
    found = sorted((PROGRAM.parent / "wheel").glob("probing-*.whl"))
    assert len(found) == 1, "build it with 'make wheel': %s" % found
    return found[0]


def pip_of(python):
    """The folder of an interpreter's pip, which others can run; None if it has no pip."""
    done = subprocess.run([python, "-c", "import pip; print(pip.__path__[0])"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode().strip() or None


class Installed:
    """An environment with the wheel in it."""

    def __init__(self, folder, python, wheel):
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.folder, self.python = folder, str(folder / "bin/python")
        self.program = str(folder / "bin/probing")
        self.site, version = self.output(
            "-c", "import sys, sysconfig; print(sysconfig.get_path('purelib')); "
            "print(*sys.version_info[:2])").splitlines()
        self.version = tuple(int(word) for word in version.split())
        pip = pip_of(python) if self.version >= (3, 7) else None
        if pip:
            # By the Python of the environment: with --prefix, Debian's own installs into local/.
            subprocess.run([self.python, pip, "install", "-q", "--ignore-installed", "--no-index",
                            "--no-warn-script-location", "--disable-pip-version-check", str(wheel)],
                           check=True)
        else:
            self.unpack(wheel)

    def unpack(self, wheel):
        """The same as pip, where it is missing; that of an old Python does not know the platform."""
        with zipfile.ZipFile(wheel) as file:
            for name in file.namelist():
                if ".data/" not in name:
                    file.extract(name, self.site)
            script = next(name for name in file.namelist() if name.endswith("/scripts/probing"))
            with file.open(script) as source, open(self.program, "wb") as target:
                shutil.copyfileobj(source, target)
        os.chmod(self.program, 0o755)

    def run(self, *words, timeout=120, preexec_fn=None, **variables):
        """Runs Python with these variables and no others of ours."""
        return subprocess.run([self.python, *words], stdout=subprocess.PIPE, cwd=str(self.folder),
                              stderr=subprocess.PIPE, env=environment(variables),
                              timeout=timeout, preexec_fn=preexec_fn)

    def output(self, *words, **variables):
        result = self.run(*words, **variables)
        assert (result.returncode, result.stderr) == (0, b""), result
        return result.stdout.decode()


def environment(variables):
    ours = re.compile("PROB|PYTHON")
    return {**{name: value for name, value in os.environ.items() if not ours.match(name)},
            **variables}


# Those that were unpacked somewhere need variables of their own, and can have no environment.
USUAL = support.one_per_version((3, 6), usable=lambda python: not {"PYTHONHOME", "LD_LIBRARY_PATH"} & (
    set(python.env) - set(os.environ)))


@pytest.fixture(scope="session", params=USUAL, ids=repr)
def installed(request, wheel, tmp_path_factory):
    python = request.param.exe
    return Installed(tmp_path_factory.mktemp("installed"), python, wheel)
