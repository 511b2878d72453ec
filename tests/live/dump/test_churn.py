# SPDX-License-Identifier: GPL-3.0-or-later
"""No impossible stacks: a program whose two call chains take turns, dumped over and over."""
import re

import pytest

import support

DEPTH = 30
CALL = 3  # the line of the call in each function's four
DUMPS = support.count(100, 10000)
VARIANTS = [("functions", 1), ("generators", 1), ("methods", 1), ("lines", 1), ("functions", 4)]
MODES = {"default": (), "nonblocking": ("--nonblocking",)}
WHERE = re.compile(r"(a|b|m|s)_(\d\d)")


def place(frame):
    """(chain, index in it, line within the function) of a frame of a chain."""
    match = WHERE.fullmatch(frame["func"])
    if not match or not frame["file"].startswith("<churn-"):
        return None
    index, first = int(match.group(2)), 1 if match.group(1) != "m" else 2
    return frame["file"], index, frame["line"] - 4 * index - first + 1


def impossible(frames):
    """Why the stack, innermost frame first, can never have been; None if it can."""
    if frames and frames[0]["line"] is None and 0 <= frames[0]["ip"] <= 4:
        frames = frames[1:]  # a generator that is being made: its first instruction has no line
    if [frame for frame in frames if frame["line"] is None]:
        return "a frame without a line: %r" % frames
    places = [place(frame) for frame in frames]
    while places and places[-1] is None:
        places.pop()  # the main program below
    if None in places:
        return "a frame that is in no chain stands between those of one"
    if len({name for name, _, _ in places}) > 1:
        return "frames of both chains"
    if [index for _, index, _ in places] != list(reversed(range(len(places)))):
        return "not consecutive"
    if places and not 1 <= places[0][2] <= 4:
        return "line %d of the innermost frame" % places[0][2]
    lines = {line for _, _, line in places[1:]}
    if places and places[0][0] == "<churn-s>":
        return None if len(lines) < 2 and lines <= {3, 4} else "lines of both chains: %r" % lines
    return None if lines <= {CALL} else "a frame that calls is not at its call: %r" % lines


def wrong_class(frame):
    """Before 3.11 Python itself does not know the class of a method."""
    if frame["file"] == "<churn-a>" and frame["func"].startswith("m_"):
        return frame["qualname"] not in (None, "A." + frame["func"])
    if frame["file"] == "<churn-b>" and frame["func"].startswith("m_"):
        return frame["qualname"] not in (None, "B." + frame["func"])
    return False


class Tally:
    """Counts of the dumps of one target."""

    def __init__(self):
        self.stacks = self.unstable = self.idle = self.frames = self.deep = 0

    def add(self, thread, mode):
        frames = support.python_frames(thread)
        why = impossible(frames)
        assert not why, "%s (read %s):\n%s" % (why, thread["read"], "\n".join(
            "%s %s:%s" % (frame["func"], frame["file"], frame["line"]) for frame in frames))
        assert not any(wrong_class(frame) for frame in frames), frames
        unstable = thread["read"] == "unstable"
        if mode == "default":
            assert not unstable and not thread["error"], thread["error"]
        if not unstable:
            assert any(frame["func"] == "main" or frame["func"] == "run" for frame in frames)
        self.stacks += 1
        self.unstable += unstable
        self.idle += thread["read"] == "idle"
        self.frames += len(frames)
        self.deep += any(WHERE.fullmatch(frame["func"]) for frame in frames)


@pytest.mark.every_interpreter
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)) + [
    i for i in support.INTERPRETERS if i.free_threaded and not i.debug_build], ids=repr)
def test_no_impossible_stack(interpreter, mode):
    tallies = []
    for variant, threads in VARIANTS:
        tally = Tally()
        program = support.HERE / "programs" / "churn.py"
        with support.Target(interpreter, program, variant, threads) as target:
            assert target.line() == "ready"
            for _ in range(DUMPS // len(VARIANTS)):
                for thread in support.dump(target.pid, *MODES[mode])["threads"]:
                    tally.add(thread, mode)
        assert mode == "nonblocking" or tally.deep > tally.stacks * 0.5, "chains are rarely seen"
        tallies.append(tally)
    total = sum(tally.stacks for tally in tallies)
    support.report("churn: %s, %s: 0 of %d stacks impossible, %d %% unstable, %.0f frames each" % (
        interpreter, mode, total, 100 * sum(tally.unstable for tally in tallies) / total,
        sum(tally.frames for tally in tallies) / total))
