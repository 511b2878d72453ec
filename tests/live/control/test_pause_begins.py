# SPDX-License-Identifier: GPL-3.0-or-later
"""A pause begins next, however many threads want the GIL, and nobody stands for it any longer."""
import signal
import struct

import pytest

import agent
import faults
import pauses
import support
from environment import OK
from pauses import Pause

TURNS = 1  # in what programs/turns.py shares
PAUSE, FROZEN, HOLD, PAUSED, FREEZE, WANTS = 7, 10, 11, 74, 76, 78  # frames of the agent
FREEZES, WAITING = 1, 2
MUTEX, CONDITION = 32, 40  # where one of each lies in what is shared


def turns_of_who_only_waits(path, shared):
    """How many others had the GIL before an ordinary client that pauses, which stops nobody."""
    with agent.Client(path) as client:
        before = shared[TURNS]
        client.send(agent.frame(PAUSE, struct.pack("<III", 0, 60000, 60000)))
        assert client.until(PAUSED)[-1][0] == PAUSED
        turns = shared[TURNS] - before
        client.send(agent.frame(agent.INTERRUPT))
        assert client.until(agent.DONE)[-1][0] == agent.DONE
    return turns


def turns_of_the_command(pid, shared):
    """The same of the command, from when it asks for the pause: it is stopped before that."""
    env = {"PROBING_FAULT_STEP": "1", "PROBING_FAULT_SIGNAL": str(int(signal.SIGSTOP))}
    with Pause(pid, wait=False, env=env, binary=faults.STEPS) as pause:
        agent.wait_until(lambda: support.thread_status(pause.process.pid)["State"][0] == "T", 60)
        before = shared[TURNS]
        pause.process.send_signal(signal.SIGCONT)
        pause.event("paused")
        turns = shared[TURNS] - before
        assert pauses.nobody_traced(pid)  # while it stands: who waits for the GIL cannot run
        pause.interrupt()
    return turns


def pause_and_end(client):
    client.send(agent.frame(PAUSE, struct.pack("<III", 0, 60000, 60000)))
    assert client.until(PAUSED)[-1][0] == PAUSED
    client.send(agent.frame(agent.INTERRUPT))
    assert client.until(agent.DONE)[-1][0] == agent.DONE


def test_a_pause_that_ended_wants_nothing(target, shared, probing):
    """Its thread is none of Python's any more, so it is not in the way of the next one; code's is."""
    process = target("turns.py", shared.path, "4")
    path = agent.load(probing, process.pid)
    with agent.Client(path) as pauses_only, agent.Client(path) as evaluates:
        evaluates.send(agent.evaluation("import threading; local = threading.local(); local.x = 7",
                                        agent.INTERACTIVE))  # which keeps its thread
        assert evaluates.until(agent.DONE)[-1][0] == agent.DONE
        for client in (pauses_only, evaluates):
            pause_and_end(client)
        names = [each["os_name"] for each in support.dump(process.pid)["threads"]]
        assert names.count("probing-eval") == 1, names
        evaluates.send(agent.evaluation("local.x", agent.INTERACTIVE))
        assert (agent.VALUE, b"7") in [(kind, text.strip()) for kind, text in evaluates.until(agent.DONE)]
        pause_and_end(pauses_only)


@pytest.mark.skipif(not faults.STEPS, reason="no build with fault steps: $PROBING_FAULT_STEPS")
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_others_have_few_turns(interpreter, target, shared, probing):
    process = target("turns.py", shared.path, "16", interpreter=interpreter)
    path = agent.load(probing, process.pid)
    rounds = support.count(8, 40)
    waits = [turns_of_who_only_waits(path, shared) for _ in range(rounds)]
    command = [turns_of_the_command(process.pid, shared) for _ in range(rounds)]
    support.report("%s: others have %.1f turns before a pause of 16 threads, %.1f if none is stopped" % (
        interpreter, sum(command) / rounds, sum(waits) / rounds))
    assert sum(command) * 2 < sum(waits), (command, waits)
    before = shared[TURNS]
    agent.wait_until(lambda: shared[TURNS] > before + 20, 60)
    assert probing(process.pid, "eval", "sys.getswitchinterval()").out == "0.005\n"


def test_steps_of_a_busy_program(target, shared, probing, newest):
    """It stands again after each of them, next."""
    process = target("turns.py", shared.path, "16")
    with Pause(process.pid):
        for _ in range(5):
            assert probing(process.pid, "step", "--time", "1ms").code == OK
            before = shared[TURNS]
            agent.wait_until(lambda: pauses.nobody_traced(process.pid))
            assert shared[TURNS] == before


@pytest.mark.parametrize("threads", ["1", "16"])
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
def test_the_switch_interval_is_not_waited_for(interpreter, threads, target, shared):
    """A program whose threads would keep the GIL for ten seconds stands within those two that the
    command waits, each time."""
    process = target("counting.py", shared.path, threads, "10", interpreter=interpreter)
    for _ in range(support.count(5, 50)):
        with Pause(process.pid) as pause:
            before = pauses.total(shared)
            assert pauses.nobody_traced(process.pid)
            assert pauses.total(shared) == before
            pause.interrupt()
        pauses.wait_until_runs(shared)


@pytest.mark.parametrize("threads", ["1", "16"])
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
def test_code_does_not_wait_for_the_switch_interval(interpreter, threads, target, shared, probing):
    """Nor does code in a pause of it, nor the end of that while the agent still forgets the client
    of the code: either would take ten minutes."""
    process = target("counting.py", shared.path, threads, "600", interpreter=interpreter)
    for _ in range(support.count(5, 50)):
        with Pause(process.pid) as pause:
            before = pauses.total(shared)
            for code, value in (("6 * 7", "42\n"), ("__import__('time').sleep(0.01)", ""),
                                ("len([n for n in range(10 ** 5)])", "100000\n")):
                done = probing(process.pid, "eval", code)
                assert (done.code, done.out, done.err) == (OK, value, ""), done
            assert pauses.total(shared) == before
            pause.interrupt()
        pauses.wait_until_runs(shared)


def read_word(pid, address):
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        memory.seek(address)
        return struct.unpack("<I", memory.read(4))[0]


# In _PyRuntime: whether there is anything to be looked at between lines, and whether the GIL is asked for.
BREAKER = {(3, 7): (712, 716), (3, 8): (592, 596)}


@pytest.mark.parametrize("interpreter", support.one_per_version(min(BREAKER), max(BREAKER)), ids=repr)
def test_code_leaves_nothing_to_be_looked_at(interpreter, target, shared, probing):
    """Who asked for the GIL in the pause does not any more; if that were still looked for, the only
    thread would run slower from then on."""
    process = target("counting.py", shared.path, "1", interpreter=interpreter)
    runtime = int(probing(process.pid, "eval", "import ctypes\nctypes.addressof("
                          "ctypes.c_int.in_dll(ctypes.pythonapi, '_PyRuntime'))").out)
    breaker, request = (runtime + offset for offset in BREAKER[interpreter.version])
    for _ in range(support.count(5, 50)):
        with Pause(process.pid) as pause:
            agent.wait_until(lambda: read_word(process.pid, request) == 1)
            assert probing(process.pid, "eval", "6 * 7").out == "42\n"
            pause.interrupt()
        pauses.wait_until_runs(shared)
        agent.wait_until(lambda: read_word(process.pid, breaker) == 0)


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 4)), ids=repr)
def test_no_import_is_waited_for(interpreter, target, shared, probing):
    """Who is at it may have been stopped for the pause; as here, it may also take longer than that waits."""
    process = target("imports.py", shared.path, interpreter=interpreter)
    with Pause(process.pid) as pause:
        before = pauses.total(shared)
        assert probing(process.pid, "eval", "6 * 7").out == "42\n"
        assert pauses.total(shared) == before
        pause.interrupt()
    pauses.wait_until_runs(shared)
    process.send(b"\n")
    released, callbacks = process.line().split()
    assert released == "released"
    for _ in range(2):
        with Pause(process.pid) as pause:  # from now on it is told of the interpreter's end
            done = probing(process.pid, "eval", "__import__('atexit')._ncallbacks()")
            assert done.out == "%d\n" % (int(callbacks) + 1), (done, callbacks)
            pause.interrupt()


@pytest.mark.parametrize("threads", ["0", "4"])
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
def test_a_program_ends_that_is_paused_just_then(interpreter, threads, target, probing):
    """Who has the GIL when it is asked for it is the main thread, which does not wait for ever."""
    for milliseconds in range(support.count(3, 40)):
        process = target("ends_busy.py", threads, interpreter=interpreter)
        agent.load(probing, process.pid)
        process.send(b"%d\n" % (milliseconds % 20))
        with Pause(process.pid, wait=False) as pause:
            if pause.process.stdout.readline():  # or else it was too late
                pause.interrupt()
            pause.process.communicate(timeout=60)
        assert process.wait() == (0, "")


def begin_pause(client, hold):
    """It waits for the GIL, and nothing was held before."""
    client.send(hold + agent.frame(PAUSE, struct.pack("<III", FREEZES, 60000, 60000)))
    assert [kind for kind, _ in client.until(WANTS)] == [WANTS]


def shared_hold(process, probing):
    """A request to hold a mutex in what we share with the program."""
    address = int(probing(process.pid, "eval", "import ctypes\n"
                          "ctypes.addressof(ctypes.c_char.from_buffer(memory))").out)
    return agent.frame(HOLD, struct.pack("<QQ", address + 8 * MUTEX, address + 8 * CONDITION))


def test_a_mutex_is_not_held_for_long(target, shared, probing):
    """We are the client that pauses: it answers, does not, names one that is locked, or is gone."""
    process = target("counting.py", shared.path, "4")
    path, hold = agent.load(probing, process.pid), shared_hold(process, probing)
    with agent.Client(path) as keeper, agent.Client(path) as by, pauses.gil_kept(process, keeper):
        begin_pause(by, hold)
        for word in (1, 2, 77):  # locked, waited for, none at all
            shared[MUTEX] = word
            by.send(hold + agent.frame(agent.STATUS))
            assert FREEZE not in [kind for kind, _ in by.until(agent.STATUS_REPLY)]
        shared[MUTEX] = 0
        for answer in (agent.frame(FROZEN, struct.pack("<IQQ", 0, 0, 0)), b"", None):
            by.send(hold)
            assert by.until(FREEZE)[-1] == (FREEZE, struct.pack("<I", WAITING))
            if answer is None:
                by.close()
            elif answer:
                by.send(answer)
            agent.wait_until(lambda: shared[MUTEX] == 0)
    pauses.wait_until_runs(shared)
    with pauses.pause_when_free(process.pid) as pause:
        pause.interrupt()


def test_a_late_answer_is_not_that_to_a_later_question(target, shared, probing):
    """Of two that are due, the first one says nothing of what was asked for last."""
    process = target("counting.py", shared.path, "4")
    path, hold = agent.load(probing, process.pid), shared_hold(process, probing)
    with agent.Client(path) as keeper, agent.Client(path) as other, agent.Client(path) as by:
        with pauses.gil_kept(process, keeper):
            begin_pause(by, hold)
            by.send(hold)
            assert by.until(FREEZE)[-1][0] == FREEZE
            agent.wait_until(lambda: shared[MUTEX] == 0)
        assert by.until(PAUSED)[-1][0] == PAUSED
        other.send(agent.evaluation("1"))
        assert by.until(FREEZE)[-1] == (FREEZE, struct.pack("<I", 0))
        for running in (0, 7):
            by.send(agent.frame(FROZEN, struct.pack("<IQQ", running, 0, 0)))
        text = other.until(agent.DONE)[-1][1][4:].decode()
        assert "some of its threads could run" in text, text
        by.send(agent.frame(agent.INTERRUPT))
        assert by.until(agent.DONE)[-1][0] == agent.DONE
        assert keeper.until(agent.DONE)[-1][0] == agent.DONE
