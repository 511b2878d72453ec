# SPDX-License-Identifier: GPL-3.0-or-later
"""Freed and reused code objects: a dump never shows the name of a function that is gone."""
import re

import pytest

import support

DUMPS = support.count(60, 3000)
MODES = {"default": (), "nonblocking": ("--nonblocking",)}
ORDER = ["a", "b", "c"]


def check(frames, before, after):
    """The numbers in names and files belong to one live set of functions."""
    found = []
    for frame in frames:
        if frame["func"] is None:
            assert frame["error"], frame
            continue
        match = re.fullmatch(r"gen_(\d{8})_([abc])", frame["func"])
        file = re.fullmatch(r"<gen_(\d{8})>", frame["file"])
        if match:
            assert file and file.group(1) == match.group(1), frame
            found.append(match.group(2))
        if file:
            assert before <= int(file.group(1)) <= after, (frame, before, after)
            assert frame["func"] in ("<module>", "<listcomp>") or match, frame
    assert found == ORDER[:len(found)][::-1], frames
    files = {frame["file"] for frame in frames if (frame["file"] or "").startswith("<gen_")}
    assert len(files) < 2, frames
    return bool(found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)) + [
    i for i in support.INTERPRETERS if i.free_threaded and not i.debug_build], ids=repr)
def test_dead_functions_are_never_named(interpreter, mode):
    seen = 0
    shared = support.Shared()
    program = support.HERE / "programs" / "reused_codes.py"
    with support.Target(interpreter, program, shared.path) as target:
        assert target.line() == "ready"
        for _ in range(DUMPS):
            before = shared[0]
            dump = support.dump(target.pid, *MODES[mode])
            after = shared[0]
            seen += check(support.python_frames(dump["threads"][0]), before, after)
    shared.close()
    assert mode == "nonblocking" or seen > DUMPS // 10, "the functions are rarely seen"
