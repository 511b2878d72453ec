# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts act on running processes on request, and find the path to an object."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import support

PACKAGE = Path(__file__).resolve().parents[3] / "package"
os.environ["PROBING_LIBRARY"] = str(Path(support.BINARY).with_name("libprobing.so"))
os.environ["PROBING_PROGRAM"] = support.BINARY
sys.path.insert(0, str(PACKAGE))

import probing  # noqa: E402


@pytest.fixture
def stepping(target, newest):
    process = target("stepping.py")
    with probing.attach(process.pid) as program:
        yield program


def test_a_pause_runs_code(stepping, capsys):
    with stepping.pause() as frozen:
        assert frozen.eval("1 + 1") == 2
        assert frozen.eval("print('said'); __name__") == "__main__"
        assert frozen.eval("x = 3") is None
        first = [(f.func, f.line) for f in stepping.thread("main").frames]
        assert first == [(f.func, f.line) for f in stepping.thread("main").frames]
        with pytest.raises(probing.Error, match="(?s)Traceback.*ZeroDivisionError"):
            frozen.eval("1 / 0")
    assert capsys.readouterr().out == "said\n"
    assert frozen.seconds > 0


def test_a_recording(stepping, tmp_path):
    recording = stepping.perf(seconds=1, native=True)
    path = recording.flamegraph(str(tmp_path / "x.html"))
    assert "<html" in Path(path).read_text(encoding="utf-8")
    assert recording.functions() and recording.query("SELECT 1 AS a") == [{"a": 1}]
    recording.close()
    assert not os.path.exists(recording.path)


def test_not_of_what_does_not_run(target, newest, tmp_path):
    process = target("walked.py")
    saved = str(tmp_path / "x.snapshot")
    subprocess.run([support.BINARY, str(process.pid), "snapshot", "--heap", "-o", saved], check=True,
                   stdout=subprocess.DEVNULL)
    with probing.attach(saved) as program:
        with pytest.raises(probing.Error):
            program.pause().__enter__()
        trainer = next(program.find("Trainer"))
        assert trainer.table["nested"]["deep"][1] == 2
        with pytest.raises(probing.Error):
            program.perf(0.1)


def test_the_way_to_an_object(target, newest):
    process = target("circle.py")
    with probing.attach(process.pid) as program:
        kept = next(program.find("Kept"))
        path = program.path_to(kept)
        assert path[-1][0] == kept and str(path), path
        holders = program.holders([kept])[kept.address]
        assert {how for _, how in holders} >= {".kept", "[0]"}, holders
        assert program.referrers(kept) == holders
        # A path can be walked: each step holds the next.
        for (value, how), (following, _) in zip(path, path[1:]):
            if isinstance(value, probing.Value) and how.startswith("."):
                assert probing.get(value, how[1:]) == following


def test_native_frames(target, newest):
    process = target("walked.py")
    with probing.attach(process.pid) as program:
        frames = program.threads(native=True)[0].frames
        assert any(f.native for f in frames) and any(not f.native for f in frames)
