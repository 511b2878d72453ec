# SPDX-License-Identifier: GPL-3.0-or-later
"""Every name, line and column: random programs that record their own stacks (see truth/)."""
import sys

import pytest

import support

sys.path.insert(0, str(support.HERE / "truth"))

import driver  # noqa: E402

ROUNDS = ["blocked"] + ["warm"] * 20 + ["blocked", "spin"]
MODES = [(), ("--nonblocking",), (), ("--freeze",)]
SEEDS = support.count(range(1000, 1002), range(2000, 2020))
# Fewer frames than this over all versions, or of each where there are few, would mean that the
# programs no longer do their work.
ENOUGH = min(support.count(5000, 100000), support.count(350, 7000) * len(support.INTERPRETERS))
TOTAL = driver.Count()


def options_of(interpreter, seed):
    """Some programs run without columns in their code objects, some optimised."""
    if seed % 5 == 3:
        return ("-O",)
    return ("-X", "no_debug_ranges") if seed % 5 == 4 and interpreter.version >= (3, 11) else ()


@pytest.mark.every_interpreter
@pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
def test_stacks_are_what_python_says(interpreter):
    for seed in SEEDS:
        options = options_of(interpreter, seed)
        with driver.Run(interpreter, seed, ROUNDS, options=options) as run:
            count = run.check(MODES)
        assert count.stacks, "the program has no leaves"
        TOTAL.add(count)


def test_enough_frames_were_compared(request):
    ran = {item.name for item in request.session.items}
    if not all("test_stacks_are_what_python_says[%s]" % i in ran for i in support.INTERPRETERS):
        pytest.skip("only some of the interpreters were asked for")
    support.report(
        "truth: %d frames of %d stacks in %d dumps are what %d interpreters say themselves; %d %% "
        "of the stacks were read while they ran without stopping them" % (
            TOTAL.frames, TOTAL.stacks, TOTAL.dumps, len(support.INTERPRETERS),
            100 * TOTAL.unstable / TOTAL.stacks))
    assert TOTAL.frames >= ENOUGH
