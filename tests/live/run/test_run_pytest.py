# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing run -- pytest`: the test that hangs is named, and with `-p probing` it fails."""
import importlib.util
import subprocess
import sys

import pytest

import hangs
import support

HUNG = 124
TESTS = """
import threading

def test_good():
    pass

def test_hangs():
    threading.Event().wait()

def test_never():
    pass
"""


def run(folder, *options, limit=("--hang", "2s"), tests=TESTS):
    (folder / "test_it.py").write_text(tests)
    env = dict(hangs.environment(), PYTHONPATH=str(support.ROOT / "package"))
    for name in [name for name in env if name.startswith("PYTEST_")]:
        del env[name]
    done = subprocess.run(
        [support.BINARY, "run", *limit, "--grace", "20s", "--", sys.executable, "-m", "pytest", "-v", "-p",
         "no:cacheprovider", "--rootdir", str(folder), *options], cwd=folder, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check_named(code, text):
    assert code == HUNG and "test          test_it.py::test_hangs (call), in " in text, text
    assert "called by test_hangs test_it.py:8" in text, text


def test_the_test_is_named(tmp_path):
    """Without the plugin, too."""
    code, _, text = run(tmp_path)
    check_named(code, text)


def test_the_test_fails(tmp_path):
    code, out, text = run(tmp_path, "-p", "probing", "--junitxml=made.xml")
    check_named(code, text)
    assert "Failed: ended by SIGTERM in test_it.py::test_hangs" in out, out
    assert "1 failed, 1 passed" in out and "test_it.py:8: " in out, out
    assert 'failures="1"' in (tmp_path / "made.xml").read_text()


@pytest.mark.skipif(not importlib.util.find_spec("xdist"), reason="pytest-xdist is not installed")
def test_a_worker_of_xdist(tmp_path):
    code, out, text = run(tmp_path, "-p", "probing", "-n2")
    check_named(code, text)
    assert "ended by SIGTERM in test_it.py::test_hangs" in out, out


@pytest.mark.skipif(not importlib.util.find_spec("xdist"), reason="pytest-xdist is not installed")
def test_a_worker_of_xdist_that_moves(tmp_path):
    """No rule has a cause: its line shows the thread of the test, which is not the main one."""
    tests = TESTS.replace("threading.Event().wait()", "threading.Event().wait(timeout=3600)")
    code, _, text = run(tmp_path, "-n2", limit=("--timeout", "8s"), tests=tests)
    assert code == HUNG and "  is at       " in text, text
    assert [line for line in text.splitlines() if "is at  " in line and "called by test_hangs test_it.py:8" in line], text


def test_other_handlers_stay(tmp_path):
    (tmp_path / "conftest.py").write_text("import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n")
    code, out, text = run(tmp_path, "-p", "probing")
    check_named(code, text)
    assert "ended by SIGTERM" not in out, out
