# SPDX-License-Identifier: GPL-3.0-or-later
"""`perf --selfcheck`: programs that measure themselves, beside what the sampler says of them."""
import json
import os
import signal
import subprocess

import pytest

import profiles
import support

OK, FAILED = 0, 1


def selfcheck(folder, *options):
    return subprocess.run([support.BINARY, "perf", "--selfcheck", *options], capture_output=True, text=True,
                          check=False, env={**os.environ, "PATH": str(folder)})


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    (tmp_path / "python3").symlink_to("/usr/bin/python3")
    (tmp_path / "python3.1").symlink_to("/usr/bin/false")
    return tmp_path


def test_a_python(folder):
    (folder / "python3.5").symlink_to("/usr/bin/false")
    done = selfcheck(folder, "--json", "-d", "3s")
    found = {row["path"]: row for row in json.loads(done.stdout)}
    broken = found.pop(os.path.realpath("/usr/bin/false"))
    assert broken["error"] == "it does not run the program" and len(found) == 1
    row, = found.values()
    assert row["path"] == os.path.realpath("/usr/bin/python3") and row["error"] is None
    assert row["python"].startswith("3.") and row["independent_samples"] > 5
    assert abs(row["sum_off"]) < 0.1, row
    # Three seconds of a busy machine are some hundred samples: only what is far off is a fault here.
    assert row["cpu"]["off"] < 0.3 and row["wall"]["off"] < 0.3, row
    modes = ("cpu", "wall", "runqueue", "gil", "blocked")
    assert all(0 <= row[mode]["off"] <= 1 for mode in modes), row
    assert done.returncode == (FAILED if any(row[mode]["wrong"] for mode in modes) else OK), done


def test_text(folder):
    done = selfcheck(folder, "-d", "500ms")
    rows = done.stdout.splitlines()
    assert rows[0].split()[0] == "indep." and " " + os.path.realpath("/usr/bin/python3") in rows[-1], done


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_interrupted(folder, number):
    """A check that was not finished judges nothing."""
    process = subprocess.Popen([support.BINARY, "perf", "--selfcheck", "-d", "600s"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": str(folder)})
    profiles.samples(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == FAILED and "WRONG" not in out, (out, err)
    assert err == "probing: interrupted after 0 of 1 Pythons, of which 0 are wrong\n", err


def test_none(tmp_path):
    done = selfcheck(tmp_path)
    assert done.returncode == FAILED and "no Python could be checked" in done.stderr, done
