# SPDX-License-Identifier: GPL-3.0-or-later
"""libprobing says which threads a debugger may make call functions, and finds breakpoints that one
has left."""

import ctypes
import random

import library
import pytest
import support
from debuggers import sleeping  # noqa: F401 (fixture)
from library import UNSUPPORTED, USAGE, Debugger, Error, Session
from test_library_debugger import AARCH64, MACHINE, Through

STACK_POINTER = 31 if MACHINE == AARCH64 else 7
TRAP = b"\x00\x00\x20\xd4" if MACHINE == AARCH64 else b"\xcc"


def registers_of(pid, change=lambda tid, ret: None):
    """A function that returns each thread's state according to the kernel while it sleeps."""
    def registers(_, tid, ret):
        try:
            with open("/proc/%d/task/%d/syscall" % (pid, tid), encoding="ascii") as file:
                words = file.read().split()
        except OSError:
            return 1
        if len(words) < 3:
            return 1
        ret[0].pc = int(words[-1], 16)
        ret[0].known = 1 << STACK_POINTER
        ret[0].value[STACK_POINTER] = int(words[-2], 16)
        change(tid, ret[0])
        return 0
    return library.ON_REGISTERS(registers)


def held(pid, **changed):
    return Debugger(pid=pid, machine=MACHINE, held=1, registers=registers_of(pid, **changed))


def judged(debugger):
    with Session() as session:
        session.open_debugger(debugger)
        return session.hijackable()


def test_a_sleeping_thread_may_be_hijacked(sleeping):  # noqa: F811
    threads = {thread["tid"]: thread for thread in judged(held(sleeping.pid))}
    assert set(threads) == set(support.thread_ids(sleeping.pid))
    first = threads.pop(sleeping.pid)
    assert first["why"] is None and first["in_call"] and first["ways_out"] == []
    # Without a thread pointer the owner of the other threads is unknown.
    assert {thread["why"] for thread in threads.values()} == {"not a thread of the C library"}


def test_the_list_ends_when_no_more_is_wanted(sleeping):  # noqa: F811
    with Session() as session:
        session.open_debugger(held(sleeping.pid))
        assert len(session.hijackable(most=1)) == 1


def test_a_thread_without_registers(sleeping):  # noqa: F811
    debugger = Debugger(pid=sleeping.pid, machine=MACHINE, held=1,
                        registers=library.ON_REGISTERS(lambda *_: 1))
    assert {thread["why"] for thread in judged(debugger)} == {"without known registers"}


def test_registers_that_lie(sleeping):  # noqa: F811
    dice = random.Random(18)

    def lie(_, registers):
        registers.known = dice.getrandbits(64)
        for number in range(64):
            registers.value[number] = dice.choice((0, 8, 1 << 63, dice.getrandbits(64),
                                                   registers.value[STACK_POINTER]))
        if dice.random() < 0.5:
            registers.pc = dice.getrandbits(64)

    for _ in range(support.count(20, 500)):
        assert judged(held(sleeping.pid, change=lie))


def test_only_what_a_debugger_holds(sleeping):  # noqa: F811
    with Session(sleeping.pid) as session, pytest.raises(Error) as caught:
        session.hijackable()
    assert caught.value.code == UNSUPPORTED and "debugger" in str(caught.value)
    debugger = held(sleeping.pid)
    debugger.held = 0
    with pytest.raises(Error, match="debugger"):
        judged(debugger)
    with Session() as session, pytest.raises(Error) as caught:
        session.hijackable()
    assert caught.value.code == USAGE


def loader_code(pid):
    """Where the code of the dynamic loader is."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        words = next(line.split() for line in maps if " r-xp " in line and "/ld-" in line)
    return tuple(int(part, 16) for part in words[0].split("-"))


class Trapped(Through):
    """Whose loader seems to have a breakpoint."""

    def on_read(self, _, address, buffer, length):
        done = super().on_read(_, address, buffer, length)
        if address <= self.at < address + done:
            self.was = ctypes.string_at(buffer + self.at - address, len(TRAP))
            ctypes.memmove(buffer + self.at - address, TRAP, len(TRAP))
        return done


def left(debugger):
    with Session() as session:
        session.open_debugger(debugger)
        return session.left_breakpoints()


def test_a_breakpoint_that_was_left(sleeping):  # noqa: F811
    assert left(Through(sleeping.pid)) == []
    debugger = Trapped(sleeping.pid)
    debugger.at = loader_code(sleeping.pid)[0] + 0x1000
    (address, length, original), = left(debugger)
    assert address == debugger.at and length == len(TRAP)
    assert original == int.from_bytes(debugger.was, "little")
