# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that sleep are walked without their registers: the C stacks equal those walked with registers,
also among stale frames."""
import pytest

import support

COMPARISONS = support.count(120, 2000)
SECONDS = 0.4
SEED = 1


def stack(thread):
    return [(frame["kind"], frame["func"], frame["ip"], frame["line"])
            for frame in thread["frames"]]


def sleeping(dump):
    """The sleepers by number."""
    return {int(thread["name"].split("-")[1]): thread for thread in dump["threads"]
            if (thread["name"] or "").startswith("sleeper-") and thread["state"] == "idle"}


@pytest.mark.parametrize("interpreter", [
    i for i in support.INTERPRETERS if i.version >= (3, 6)], ids=repr)
def test_same_stack_as_with_registers(interpreter):
    compared = 0
    shared = support.Shared()
    program = support.HERE / "programs" / "sleepers.py"
    with support.Target(interpreter, program, shared.path, SECONDS, SEED) as target:
        count = int(target.line().split()[1])
        for _ in range(10 * COMPARISONS):
            before = [shared[i] for i in range(count)]
            idle = sleeping(support.dump(target.pid, "--native=all"))
            frozen = sleeping(support.dump(target.pid, "--native=all", "--freeze"))
            for number, thread in idle.items():
                same_sleep = before[number] == shared[number] and before[number] % 2
                if not same_sleep or number not in frozen or thread["read"] != "idle":
                    continue
                if support.python_frames(thread) != support.python_frames(frozen[number]):
                    continue  # it woke up to start a helper
                assert not thread["error"], thread["error"]
                assert stack(thread) == stack(frozen[number])
                compared += 1
            if compared >= COMPARISONS:
                break
    shared.close()
    assert compared >= COMPARISONS, "only %d stacks compared" % compared
    support.report("%s: %d native stacks of sleeping threads equal to those from registers" % (
        interpreter, compared))
