# SPDX-License-Identifier: GPL-3.0-or-later
"""A pause begins when CPython gives the agent the GIL, and stops no thread of the program for that."""
import struct

import pytest

import agent
import pauses
import support
from environment import OK, TIMEOUT
from pauses import Pause

TURNS = 1  # index in the shared memory of programs/turns.py
PAUSE, FROZEN, PAUSED, FREEZE = 7, 10, 74, 76  # frames of the agent
FREEZES = 1


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


@pytest.mark.parametrize("interpreter", [each for each in support.INTERPRETERS if pauses.agent_holds(each)],
                         ids=repr)
def test_threads_that_never_rest(interpreter, target, shared):
    """The agent is given the GIL in its turn, and no thread of the program is stopped for that."""
    process = target("counting.py", shared.path, "16", interpreter=interpreter)
    for _ in range(support.count(3, 30)):
        with Pause(process.pid, "--within", "60s") as pause:
            before = pauses.total(shared)
            assert pauses.nobody_traced(process.pid)
            assert pauses.total(shared) == before
            pause.interrupt()
        pauses.wait_until_runs(shared)


def test_steps_of_a_busy_program(target, shared, probing, newest):
    """It is paused again after each of them."""
    process = target("turns.py", shared.path, "16")
    with Pause(process.pid):
        for _ in range(5):
            assert probing(process.pid, "step", "--time", "1ms").code == OK
            before = shared[TURNS]
            agent.wait_until(lambda: pauses.nobody_traced(process.pid))
            assert shared[TURNS] == before


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
def test_the_switch_interval_is_the_programs(interpreter, target, shared, probing):
    """A thread keeps the GIL for as long as the program says. The pause waits for that, or says so."""
    process = target("counting.py", shared.path, "1", "2", interpreter=interpreter)
    with Pause(process.pid, "--within", "100ms", wait=False) as pause:
        err = pause.process.communicate(timeout=60)[1].decode()
        assert pause.process.returncode == TIMEOUT, err
        assert "was not free within 0.1 s" in err and "has waited for 2.0 s" in err, err
        assert "sys.setswitchinterval()" in err and "--within" in err and "--hard" in err, err
    pauses.wait_until_runs(shared)
    with Pause(process.pid, "--within", "60s") as pause:
        before = pauses.total(shared)
        assert probing(process.pid, "eval", "6 * 7").out == "42\n"
        assert pauses.total(shared) == before
        pause.interrupt()
    pauses.wait_until_runs(shared)


@pytest.mark.parametrize("threads", ["1", "16"])
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_code_does_not_wait_for_the_switch_interval(interpreter, threads, target, shared, probing):
    """Nor does the end of the pause, while the agent still forgets the client of the code: either
    would take ten minutes."""
    for _ in range(support.count(2, 20)):
        process = target("counting.py", shared.path, threads, interpreter=interpreter)
        with Pause(process.pid, "--within", "60s") as pause:
            before = pauses.total(shared)
            for code, value in (("sys.setswitchinterval(600)", ""), ("6 * 7", "42\n"),
                                ("__import__('time').sleep(0.01)", ""),
                                ("len([n for n in range(10 ** 5)])", "100000\n")):
                done = probing(process.pid, "eval", code)
                assert (done.code, done.out, done.err) == (OK, value, ""), done
            assert pauses.total(shared) == before
            pause.interrupt()
        pauses.wait_until_runs(shared)
        process.kill()


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 4)), ids=repr)
def test_no_import_is_waited_for(interpreter, target, shared, probing):
    """The importing thread may be stopped by the pause; as here, it may also take longer than the wait."""
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
        with Pause(process.pid) as pause:  # from now on the interpreter's end is reported
            done = probing(process.pid, "eval", "__import__('atexit')._ncallbacks()")
            assert done.out == "%d\n" % (int(callbacks) + 1), (done, callbacks)
            pause.interrupt()


@pytest.mark.parametrize("threads", ["0", "4"])
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
def test_a_program_ends_that_is_paused_just_then(interpreter, threads, target, probing):
    """The GIL holder at the time of the request is the main thread, which does not wait for ever."""
    for milliseconds in range(support.count(3, 40)):
        process = target("ends_busy.py", threads, interpreter=interpreter)
        agent.load(probing, process.pid)
        process.send(b"%d\n" % (milliseconds % 20))
        with Pause(process.pid, wait=False) as pause:
            if pause.process.stdout.readline():  # or else it was too late
                pause.interrupt()
            pause.process.communicate(timeout=60)
        assert process.wait() == (0, "")


def test_a_late_answer_is_not_that_to_a_later_request(target, shared, probing):
    """Of two pending answers, the first one does not answer the last request."""
    process = target("counting.py", shared.path, "4")
    path = agent.load(probing, process.pid)
    with agent.Client(path) as by:
        for answers in ([], [0, 7]):
            by.send(agent.frame(PAUSE, struct.pack("<III", FREEZES, 60000, 60000)))
            assert by.until(PAUSED)[-1][0] == PAUSED
            with agent.Client(path) as other:
                other.send(agent.evaluation("1"))
                kind, payload = by.until(FREEZE)[-1]
                assert kind == FREEZE and struct.unpack("<IIQ", payload)[0] == 0
                for running in answers:
                    by.send(agent.frame(FROZEN, struct.pack("<IQQQ", running, 0, 0, 0)))
                if answers:
                    text = other.until(agent.DONE)[-1][1][4:].decode()
                    assert "some of its threads could run" in text, text
                by.send(agent.frame(agent.INTERRUPT))
                assert by.until(agent.DONE)[-1][0] == agent.DONE
                if not answers:
                    assert other.until(agent.DONE)[-1][0] == agent.DONE
    pauses.wait_until_runs(shared)
