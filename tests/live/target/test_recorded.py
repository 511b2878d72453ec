# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots recorded of versions that no package provides any more, and of the others for comparison: read
with nothing but the program, their output equals that of their making, and the recorded program's own
data. tests/tools/record-snapshots made them."""
import gzip
import json
import re

import pytest

import support
from bare import Bare

DATA = support.ROOT / "tests" / "data" / "snapshots"
NAMES = sorted(path.stem for path in DATA.glob("*.snap"))
DUMP = ["debug", "--dump", "--locals", "--native=all"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return Bare(tmp_path_factory.mktemp("bare"))


def replay(bare, name, *options):
    return bare.replay(DATA / (name + ".snap"), *DUMP, *options)


def test_versions_are_all_recorded():
    assert {re.match(r"\w+-(3\.\d+)", name).group(1) for name in NAMES} == \
        {"3.%d" % minor for minor in range(4, 16)}
    assert any(re.search(r"-3\.\d+t$", name) for name in NAMES)
    assert sum(path.stat().st_size for path in DATA.iterdir()) <= 4 << 20


@pytest.mark.parametrize("name", NAMES)
def test_replay_says_what_it_said(bare, name):
    with gzip.open(DATA / (name + ".json.gz")) as file:
        assert replay(bare, name, "--source", "--json").decode() == file.read().decode()


@pytest.mark.parametrize("name", NAMES)
def test_replay_is_the_truth(bare, name):
    truth = json.loads((DATA / (name + ".truth.json")).read_text(encoding="ascii"))
    dump = json.loads(replay(bare, name, "--json"))
    threads = {thread["name"]: thread for thread in dump["threads"]}
    assert threads.keys() == truth.keys()
    for thread, told in truth.items():
        frames = support.python_frames(threads[thread])
        assert [(frame["func"], frame["line"]) for frame in frames] == \
            [(frame["func"], frame["line"]) for frame in told]
        for frame, expected in zip(frames, told):
            assert expected["qualname"] in (None, frame["qualname"])
            values = {each["name"]: each["value"] for each in frame["locals"]}
            for variable, value in (expected["locals"] or {}).items():
                assert (thread, variable, values.get(variable)) == (thread, variable, value)


@pytest.mark.parametrize("name", NAMES)
def test_replay_as_text(bare, name):
    """Each function of the program, from the innermost out, each with its line, native frames
    between them."""
    truth = json.loads((DATA / (name + ".truth.json")).read_text(encoding="ascii"))
    text = replay(bare, name, "--no-fold").decode()
    sections = re.split(r"^(?=\S)", text, flags=re.M)
    for thread, told in truth.items():
        section = next(each for each in sections if re.match(r"[^\n]*%s\b" % thread, each)
                       and "recorded.py" in each)
        at = 0
        for frame in told:
            if frame["locals"] is None:
                continue
            line = r"^    (\S+\.)?%s +.*recorded\.py:%d\b" % (frame["func"], frame["line"])
            found = re.search(line, section[at:], re.M)
            assert found, (thread, frame, section)
            at += found.end()
        assert re.search(r"^    read\b|^    __GI___?\w*read|libc", section, re.M), section
