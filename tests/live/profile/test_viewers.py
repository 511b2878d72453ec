# SPDX-License-Identifier: GPL-3.0-or-later
"""Our files in speedscope itself, which also reads collapsed stacks, pprof and Chrome's traces."""
import base64
import json
import pathlib
import subprocess
import time

import pytest

import browser
import profiles
import support

OK = 0
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]

pytestmark = pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed")


@pytest.fixture(name="speedscope", scope="module")
def fixture_speedscope():
    """`npm install -g speedscope` brings the viewer as a page that needs no network."""
    try:
        folder = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        folder = "/nonexistent"
    page = pathlib.Path(folder.strip()) / "speedscope/dist/release/index.html"
    if not page.exists():
        pytest.skip("speedscope is not installed")
    return page


@pytest.fixture(name="recording", scope="module")
def fixture_recording(probing, tmp_path_factory):
    file = tmp_path_factory.mktemp("viewers") / "run.profile"
    with support.Target(NEWEST, profiles.PROGRAM) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        assert probing(target.pid, "perf", "-d", "2s", "-r", 400, "-o", file).code == OK
    return file


def table(page, script, name):
    """Rows of its table of functions: {name: percent of the total}."""
    with browser.Browser() as chromium:
        chromium.open("%s?%s#localProfilePath=%s" % (page, name, script))
        end = time.monotonic() + 60
        rows = []
        while len(rows) < 2:
            assert time.monotonic() < end, chromium.value("document.body.innerText")
            chromium.press("3")
            rows = chromium.value("[...document.querySelectorAll('tr')].map((row) => row.innerText)")
        assert not chromium.errors, chromium.errors
    return {row.split()[4].partition(" ")[0]: row.split()[1].strip("(>%)") for row in rows[1:]}


@pytest.mark.parametrize("extension", ["speedscope.json", "collapsed", "pb.gz", "trace.json"])
def test_speedscope(probing, speedscope, recording, tmp_path, extension):
    file, script = tmp_path / ("run." + extension), tmp_path / "load.js"
    mode = "wall" if extension == "trace.json" else "cpu"
    assert probing(recording, "perf", "-m", mode, "-o", file).code == OK
    script.write_text("speedscope.loadFileFromBase64(%s, %s)" % (
        json.dumps(file.name), json.dumps(base64.b64encode(file.read_bytes()).decode())))
    shares = profiles.shares(json.loads(probing(recording, "perf", "--json", "-m", mode).out))
    shown = table(speedscope, script, file.name)
    for name in ("burn", "work", "short", "long", "main"):
        # It adds times of a trace as floating-point numbers, and mistakes the rest for an overlap.
        assert name in shown
        assert extension == "trace.json" or abs(float(shown[name]) - shares[name]) < 2, (shown, shares)
