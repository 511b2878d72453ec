# SPDX-License-Identifier: GPL-3.0-or-later
"""Extensions in the entry points "probing" of installed packages: loaded only on request."""

import pytest
from debuggers import both, gdb, printed
from scripts import run
from test_extend import EXTENSION, QUERY, walked  # noqa: F401 (a fixture)

ROWS = "['MainThread', 'wanter']\n"
COUNT = "SELECT count(*) AS n FROM depths"


def install(site, name, module):
    """A package with one module, as pip leaves it."""
    (site / ("%s.py" % name)).write_text(module)
    folder = site / ("%s-1.0.dist-info" % name)
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name)
    (folder / "entry_points.txt").write_text("[probing]\nmine = %s\n[console_scripts]\nx = y:z\n" % name)


@pytest.fixture
def site(tmp_path):
    """An environment in which a package is installed, and no files of the user's own."""
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, "offered", EXTENSION)
    own = tmp_path / "config" / "probing"
    own.mkdir(parents=True)
    return folder, own, {"PYTHONPATH": str(folder), "XDG_CONFIG_HOME": str(own.parent)}


def test_when_asked_for(walked, site):  # noqa: F811
    _, _, env = site
    result = run("script", "--entry-points", "-c", QUERY, walked.pid, env=env)
    assert (result.out, result.err, result.code) == (ROWS, "", 0), result
    result = run("script", "--entry-points", "slow-ones", walked.pid, "x", env=env)
    assert result.out.count("x ") == 2 and result.code == 3, result
    assert "slow-ones      Threads that wait.\n" in run("script", "--entry-points", "--list", env=env).out


def test_when_not(walked, site):  # noqa: F811
    _, _, env = site
    result = run(walked.pid, "script", "-c", "import sys; print('offered' in sys.modules)", env=env)
    assert result.out == "False\n", result
    assert run("slow-ones", walked.pid, "x", env=env).code == 2
    result = run(walked.pid, "query", COUNT, env=env)
    assert result.code and "depths" in result.err, result


def test_always_by_a_file_of_the_user(walked, site):  # noqa: F811
    """A user's file that loads them makes their tables and texts available in the shell."""
    _, own, env = site
    (own / "packages.py").write_text("import probing\nprobing.load_entry_points()\n")
    result = run(walked.pid, "query", "-f", "csv", COUNT, env=env)
    assert (result.out, result.code) == ("n\n2\n", 0), result
    assert run(walked.pid, "print", "self.model", env=env).out.strip() == "Slotted of 3 weights"


def test_one_that_fails_is_left_out(walked, site):  # noqa: F811
    folder, _, env = site
    install(folder, "broken", "import probing\n1 / 0\n")
    result = run("script", "--entry-points", "-c", QUERY, walked.pid, env=env)
    assert result.out == ROWS and result.code == 0, result
    assert "entry point mine = broken failed" in result.err and "ZeroDivisionError" in result.err, result


@both
def test_in_debuggers(start, target, newest, site):
    folder, own, _ = site
    process = target("walked.py")
    python = "python " if start is gdb else "script "
    # LLDB finds its own module by $PYTHONPATH.
    code = "import sys; sys.path.insert(0, %r); import probing; probing.load_entry_points()" % str(folder)
    session = start(python + code, ("say",),
                    "probing slow-ones x --names", ("count",), "probing query -f json " + COUNT, ("end",),
                    arguments=["-p", process.pid], env={"XDG_CONFIG_HOME": str(own.parent)})
    assert printed(session, "say").splitlines()[-2:] == ["x MainThread 0.0", "x wanter 0.0"], session
    assert session.rows("count") == [{"n": 2}], session
    assert process.alive()
