# SPDX-License-Identifier: GPL-3.0-or-later
"""The older tool whose package, hook and command are named as ours: each installed over the other, by pip."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
import support
from wheels import environment, pip_of, wheel  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(support.BINARY).parent
# Only the names of its files matter.
FILES = {
    "probing/__init__.py": "VERSION = '0.2.3'\n",
    "probing/_core.abi3.so": "",
    "probing/cli/__init__.py": "",
    "probing/cli/__main__.py": "def main():\n    print('the other')\n",
    "probing.pth": "import probing_hook\n",
    "probing_hook.py": "",
    "probing-0.2.4.dist-info/METADATA": "Metadata-Version: 2.1\nName: probing\nVersion: 0.2.4\n",
    "probing-0.2.4.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "probing-0.2.4.dist-info/entry_points.txt": "[console_scripts]\nprobing=probing.cli.__main__:main\n",
}
pytestmark = pytest.mark.skipif(not pip_of(sys.executable), reason="pip is not installed")


class Venv:
    def __init__(self, folder):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.folder, self.program = folder, folder / "bin/probing"
        self.python, self.pip_folder = str(folder / "bin/python"), pip_of(sys.executable)

    def pip(self, *words):
        subprocess.run([self.python, self.pip_folder, words[0], "-q", "--disable-pip-version-check", *map(str, words[1:])],
                       check=True, env=environment({}))

    def install(self, *words):
        self.pip("install", "--no-index", *words)

    def run(self, *words, **variables):
        return subprocess.run(list(map(str, words)), check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, env=environment(variables), cwd=str(self.folder))

    def files(self):
        """Of what has the name, without what Python caches."""
        return {path.name for path in self.folder.glob("lib/*/site-packages/*prob*")}

    def warned(self):
        return self.run(self.python, "-c", "import probing").stderr

    def hook(self):
        return self.run(self.python, "-c", "", PROBING="no-such-program.py").stderr

    def doctor(self, path="{own}:{others}", **variables):
        path = path.format(own=self.folder / "bin", others=os.environ["PATH"])
        return self.run(support.BINARY, "doctor", PATH=path, **variables).stdout


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "probing-0.2.4-py3-none-any.whl"
    with zipfile.ZipFile(str(path), "w") as file:
        for name, text in FILES.items():
            file.writestr(name, text)
        record = "probing-0.2.4.dist-info/RECORD"
        file.writestr(record, "".join("%s,,\n" % name for name in [*FILES, record]))
    return path


@pytest.fixture
def renamed(wheel, tmp_path):
    """Our wheel, as a publisher makes it who chooses another name."""
    parts = BUILD / "wheel"
    version = wheel.name.split("-")[1]
    subprocess.run([str(ROOT / "build-aux/make-wheel"), version, str(parts / "probing"), str(parts / "libprobing.so"),
                    str(BUILD / "libprobing-agent.so"), str(tmp_path)],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, "DISTRIBUTION": "proc-probe"})
    made, = tmp_path.glob("proc_probe-*.whl")
    return made


@pytest.fixture
def venv(tmp_path):
    return Venv(tmp_path / "venv")


def is_ours(venv):
    return venv.run(venv.program, "--version").stdout.startswith("probing 1.")


def test_an_upgrade_keeps_ours(venv, wheel, other):
    """An index that has both: pip takes the higher version."""
    folders = ["--find-links", wheel.parent, "--find-links", other.parent]
    venv.install(wheel)
    venv.install(*folders, "-U", "probing")
    assert is_ours(venv) and "probing_hook.py" not in venv.files()


def test_one_replaces_the_other_wholly(venv, wheel, other):
    venv.install(other)
    before = venv.files()
    assert venv.run(venv.program).stdout == "the other\n"
    assert "another tool of this name" in venv.doctor() and str(venv.program) in venv.doctor()
    venv.install(wheel)
    assert is_ours(venv) and not venv.warned() and not venv.hook()
    assert not venv.files() & {"probing_hook.py", "probing-0.2.4.dist-info"}
    assert "no other tool of this name" in venv.doctor()
    venv.install(other)
    assert venv.files() == before and venv.run(venv.program).stdout == "the other\n"


def test_behind_ours_nobody_finds_it(venv, other):
    """A command that a shell does not come to."""
    venv.install(other)
    ours = str(pathlib.Path(support.BINARY).parent)
    for path, is_told in (("{own}:%s:{others}", True), ("%s:{own}:{others}", False)):
        assert ("the command of another tool" in venv.doctor(path.replace("%s", ours))) == is_told, path


def test_both_in_one_folder(venv, renamed, other):
    """Under another name of ours pip does not see that they exclude each other: we say so."""
    venv.install(other)
    venv.install(renamed)
    assert is_ours(venv) and "another tool named probing" in venv.warned()
    assert "another tool named probing" in venv.hook() and "_core" not in venv.hook()
    assert "another tool of this name" in venv.doctor()
    assert "another tool of this name" in venv.doctor("{others}", VIRTUAL_ENV=str(venv.folder))
    assert "another tool of this name" in venv.run(venv.program, "doctor").stdout
    venv.pip("uninstall", "-y", "probing")
    venv.install("--force-reinstall", renamed)
    assert is_ours(venv) and not venv.warned() and not venv.hook()
    assert "no other tool of this name" in venv.doctor()
    venv.pip("uninstall", "-y", "proc-probe")
    assert not venv.files() and not venv.program.exists()


@pytest.mark.parametrize("by", ["system-site-packages", "addsitedir"])
def test_in_another_folder(venv, renamed, other, tmp_path, by):
    """Not beside ours: of the interpreter that the environment shares, or of a folder that a .pth file adds."""
    base = Venv(tmp_path / "base")
    base.install(other)
    site, = base.folder.glob("lib/*/site-packages")
    venv.install(renamed)
    mine, = venv.folder.glob("lib/*/site-packages")
    if by == "addsitedir":
        (mine / "other.pth").write_text("import site; site.addsitedir(%r)\n" % str(site))
    else:
        # As of an interpreter whose own packages have it.
        lib = tmp_path / "interpreter"
        (lib / "bin").mkdir(parents=True)
        shutil.copytree(str(base.folder / "lib"), str(lib / "lib"))
        site, = lib.glob("lib/*/site-packages")
        config = venv.folder / "pyvenv.cfg"
        config.write_text("home = %s\ninclude-system-site-packages = true\n" % (lib / "bin"))
        assert "another tool of this name" in venv.doctor("{others}", VIRTUAL_ENV=str(venv.folder))
        return
    assert "another tool named probing" in venv.warned() and str(site) in venv.warned()
    assert "another tool named probing" in venv.hook() and str(site) in venv.hook()


def test_of_the_interpreter_of_an_environment(venv, renamed):
    """Hooks run before site adds the interpreter's own folders: their names are known."""
    venv.install(renamed)
    code = ("import os, site, sys, probing_startup as hook; sys.path[:] = []; site.PREFIXES[:] = [sys.base_prefix]; "
            "print(hook.folders_to_come() == site.getsitepackages())")
    assert venv.run(venv.python, "-c", code).stdout == "False\n"
    config = venv.folder / "pyvenv.cfg"
    config.write_text(config.read_text().replace("packages = false", "packages = true"))
    assert venv.run(venv.python, "-c", code).stdout == "True\n"


def test_two_distributions_of_ours(venv, renamed, wheel):
    """Whichever was installed last has the files, and each uninstalls those of the other."""
    venv.install(wheel)
    assert "no other tool of this name" in venv.doctor()
    venv.install(renamed)
    assert "proc_probe-" in venv.doctor() and "both own" in venv.doctor()
    venv.pip("uninstall", "-y", "probing")
    assert "both own" not in venv.doctor()
