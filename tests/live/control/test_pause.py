# SPDX-License-Identifier: GPL-3.0-or-later
"""`debug --pause`: all Python threads of a process are paused, can be inspected, and always run again."""
import json
import os
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

import agent
import pauses
import support
from environment import FAILED, OK, TIMEOUT, UNSUPPORTED, USAGE, strip
from pauses import Pause

ALL = [each for each in support.INTERPRETERS if pauses.agent_holds(each)]
CYCLES = support.count(8, 200)
QUEUED = signal.SIGRTMIN + 1


@pytest.fixture
def counting(target, shared, newest):
    """A program whose threads never rest."""
    return target("counting.py", shared.path, "4")


@pytest.mark.parametrize("interpreter", ALL, ids=repr)
def test_nothing_runs_while_it_is_looked_at(interpreter, target, shared, probing):
    process = target("counting.py", shared.path, "16", interpreter=interpreter)
    with Pause(process.pid) as pause:
        assert pause.begun["by"] == "agent"
        before = pauses.total(shared)
        for code, value in (("len(counts)", "16"), ("sum(shared[:16])", str(before)),
                            ("import time; time.sleep(0.05); sum(shared[:16])", str(before)),
                            ("len([n for n in range(10 ** 6)])", "1000000"),
                            ("len(__import__('pathlib').Path(os.__file__).read_text()) > 0", "True"),
                            ("import gc; gc.collect() >= 0", "True"),
                            ("__import__('threading').active_count()", "18")):
            done = probing(process.pid, "eval", code)
            assert done.code == OK and done.err == "", done
            assert done.out == value + "\n" or code.startswith("__import__"), done
        assert pauses.total(shared) == before
        done = probing(process.pid, "eval", "1 / 0")
        assert done.code == FAILED and "ZeroDivisionError" in done.err, done
        done = probing(process.pid, "eval", "changed = 7")
        assert probing(process.pid, "eval", "changed").out == "7\n"
        done = probing(process.pid, "eval", "--thread", "main", "1")
        assert done.code != OK and "its main thread with it" in done.err, done
        dump = support.dump(process.pid, "--locals")
        of = [str(frame.get("locals")) for thread in dump["threads"]
              for frame in support.python_frames(thread) if frame["func"] == "work"]
        assert len(of) == 16 and any("of thread 7" in each for each in of), of
        assert pauses.total(shared) == before
        ended = pause.interrupt()
    assert ended["reason"] == "interrupted" and ended["held_us"] > 0, ended
    pauses.wait_until_runs(shared)
    assert pauses.nobody_traced(process.pid)


@pytest.mark.parametrize("interpreter", ALL, ids=repr)
def test_no_thread_runs_untold(interpreter, target, shared, probing):
    """Before, in and after code: on a busy machine all of that takes its time."""
    process = target("counting.py", shared.path, "16", interpreter=interpreter)
    with Pause(process.pid):
        for _ in range(support.count(20, 300)):
            before = pauses.total(shared)
            done = probing(process.pid, "eval", "len(counts)")
            assert done.code == OK and done.out == "16\n", done
            assert "could run while" in done.err or pauses.total(shared) == before, done


AT_WORK = """
import hashlib, threading
endless = threading.Thread(target=hashlib.pbkdf2_hmac, daemon=True, args=("sha256", b"", b"", 2 ** 31 - 1))
endless.start()
endless.native_id
"""


def run_seconds(pid, tid):
    return int(Path("/proc/%d/task/%d/schedstat" % (pid, tid)).read_text().split()[0]) / 1e9


def test_a_thread_at_work_is_not_waited_for(target, shared, probing):
    """One in a call of C that takes long, while others wait for the GIL: it has some processor time
    to come to a wait, and no more."""
    process = target("counting.py", shared.path, "2")
    tid = int(probing(process.pid, "eval", AT_WORK).out)
    agent.wait_until(lambda: run_seconds(process.pid, tid) > 0.05, 60)  # the call has begun
    with Pause(process.pid) as pause:
        before, ran = pauses.total(shared), []
        for _ in range(5):
            begin = run_seconds(process.pid, tid)
            done = probing(process.pid, "eval", "6 * 7")
            assert done.out == "42\n" and "some of its threads could run" in done.err, done
            ran.append(run_seconds(process.pid, tid) - begin)
        assert pauses.total(shared) == before
        assert min(ran) < 0.4, ran  # it is let work for 20 ms
        pause.interrupt()


WAITING = """
import select, threading
lock, poll, ends = threading.Lock(), select.poll(), os.pipe()
lock.acquire()
poll.register(ends[0], select.POLLIN)
for wait in (lambda: lock.acquire(timeout=600)), (lambda: poll.poll(600000)):
    threading.Thread(target=wait, daemon=True).start()
"""


def test_code_again_and_again(counting, probing):
    """A wait with a timeout continues as another call after a stop, and is stopped again."""
    assert probing(counting.pid, "eval", WAITING).code == OK
    with Pause(counting.pid):
        for number in range(4):
            done = probing(counting.pid, "eval", str(number))
            assert done.code == OK and done.err == "" and done.out == "%d\n" % number, done


def test_every_table_can_be_queried(counting, shared, probing):
    tables = probing("tables", "--json")
    assert tables.code == OK, tables
    with Pause(counting.pid):
        before = pauses.total(shared)
        for row in json.loads(tables.out):
            name = "%s.%s" % (row["schema"], row["name"])
            done = probing(counting.pid, "query", "-f", "json", "SELECT * FROM %s LIMIT 50" % name)
            assert done.code == OK or "needs to know" in done.err or \
                "are of recordings" in done.err, (name, done)
        assert pauses.total(shared) == before


@pytest.mark.parametrize("interpreter", ALL, ids=repr)
def test_many_pauses_of_a_program_that_checks_itself(interpreter, target, probing):
    process = target("self_checking.py", "7", interpreter=interpreter)
    held, begun, sent = [], [], 0
    for cycle in range(CYCLES):
        with Pause(process.pid) as pause:
            begun.append(pause.begun["after_us"])
            os.kill(process.pid, QUEUED)
            sent += 1
            if cycle % 4 == 1:
                done = probing(process.pid, "eval", "counts['memory'] > 0 and time.sleep(0.01)")
                assert done.code == OK, done
            elif cycle % 4 == 2:
                done = probing(process.pid, "step", "--time", "20ms")
                assert done.code == OK, done
            else:
                time.sleep(0.1)  # how long the pause is that the program has to notice
            held.append((pause.interrupt()["held_us"], cycle % 4 != 2))
    process.send(b"x")
    wrong, counts = json.loads(process.line())
    assert wrong == [], wrong
    assert counts["signals"] == sent, counts
    # By the program's own clock the pause was as long as reported.
    gaps = sorted(counts["gaps"])
    for us, whole in held:
        longer = [gap for gap in gaps if gap >= us / 1e6 - 0.002]
        assert not whole or us < 50000 or longer, (us, gaps)
    whole = [us for us, whole in held if whole]
    support.report("%d pauses of %s begin after %.1f ms (median), %.1f ms (longest)" % (
        CYCLES, interpreter, sorted(begun)[CYCLES // 2] / 1e3, max(begun) / 1e3))
    assert sum(gaps) >= sum(us for us in whole if us >= 60000) / 1e6 - 0.002 * len(whole)
    assert process.wait()[0] == 0


def lost(process):
    """Seconds that a program has lost by now, but for waiting for a processor."""
    process.send(b"x")
    now, ran, waited = json.loads(process.line())
    return now - ran - waited


@pytest.mark.parametrize("options", [[], ["--hard"]], ids=["agent", "hard"])
@pytest.mark.parametrize("interpreter", ALL, ids=repr)
def test_a_program_loses_what_is_told(interpreter, options, target, probing):
    """No more and no less, by its own clock and the kernel's counters of its thread. The pausing thread's
    own work and its wait for a processor may come on top."""
    process = target("clocked.py", interpreter=interpreter)
    agent.load(probing, process.pid)
    before, held, asks, pausing, unsure = lost(process), 0, 0, 0, 0
    for number in range(3):
        with Pause(process.pid, *options) as pause:
            asks -= pauses.busy_seconds(process.pid)  # requests of the GIL, each 5 ms, during the pause
            if number == 1 and not options:
                start = pauses.busy_seconds(process.pid)
                assert probing(process.pid, "step", "--time", "100ms").code == OK
                stepped = pauses.busy_seconds(process.pid) - start
                asks -= stepped
                unsure = max(stepped - 0.1, 0)  # requests while the command began and ended
            if number == 2 and not options:
                assert probing(process.pid, "eval", "__import__('time').sleep(0.1)").code == OK
            time.sleep(0.3)  # how long the pause is that is measured
            asks += pauses.busy_seconds(process.pid)
            pausing += pauses.busy_seconds(pause.process.pid) + sum(
                pauses.busy_seconds(process.pid, tid)
                for tid, name in agent.tasks(process.pid).items() if name == "probing-eval")
            held += pause.interrupt()["held_us"] / 1e6
    after = lost(process) - before + asks
    assert held - 3 * 0.01 - unsure <= after <= held + pausing + 3 * 0.05, (held, after, pausing,
                                                                            unsure)
    support.report("%s, %s: it was told that %.1f ms were lost, and %.1f were" % (
        interpreter, "by ptrace" if options else "by the agent", held * 1e3, after * 1e3))


def test_the_time_is_up(counting, shared):
    with Pause(counting.pid, "--max", "300ms") as pause:
        ended = pause.end()
    assert ended["reason"] == "deadline", ended
    assert ended["held_us"] >= 200000, ended
    pauses.wait_until_runs(shared)


def test_resume_from_elsewhere(counting, shared, probing):
    with Pause(counting.pid) as pause:
        done = probing(counting.pid, "resume", "--json")
        assert done.code == OK and json.loads(done.out)["held_us"] > 0, done
        assert pause.end()["reason"] == "resume"
    pauses.wait_until_runs(shared)
    done = probing(counting.pid, "resume")
    assert done.code == FAILED and "not paused" in done.err, done
    done = probing(counting.pid, "step")
    assert done.code == FAILED and "not paused" in done.err, done


def test_steps(counting, shared, probing):
    with Pause(counting.pid):
        before = pauses.total(shared)
        done = probing(counting.pid, "step", "--time", "100ms")
        assert done.code == OK and "100 ms" in done.out, done
        after = pauses.total(shared)
        assert after > before
        assert probing(counting.pid, "eval", "sum(shared[:16])").out == "%d\n" % after


def test_ended_at_any_moment_of_an_evaluation(counting, shared):
    """Also while the other threads are about to be stopped for it, or let go."""
    for cycle in range(support.count(40, 400)):
        with Pause(counting.pid) as pause:
            with subprocess.Popen([support.BINARY, "-t", str(counting.pid), "eval", "1 + 1"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as code:
                time.sleep(0.0005 * (cycle % 60))
                ended = pause.interrupt()
                assert code.communicate(timeout=60)[0] == b"2\n" and code.returncode == OK
        assert ended["held_us"] < 60 * 10 ** 6, ended
        pauses.wait_until_runs(shared)
        assert pauses.nobody_traced(counting.pid)


PAUSE, RESUME, STEP, FROZEN, PAUSED, FREEZE, THAW = 7, 8, 9, 10, 74, 76, 77  # frames of the agent
FREEZES = 1
MUTEX = 32  # its offset in the shared memory; its first word is the lock


def waits_for(pid, address):
    calls = [Path("/proc/%d/task/%d/syscall" % (pid, tid)).read_text()
             for tid in support.thread_ids(pid)]
    return any(" %#x " % address in call for call in calls)


def test_ended_while_it_is_about_to_stop_the_others(counting, shared, probing):
    """We are the client that pauses. A released thread is not stopped again, since the GIL could not be
    dropped then."""
    agent.load(probing, counting.pid)
    path = json.loads(probing(counting.pid, "agent", "status", "--json").out)["socket"]
    address = int(probing(counting.pid, "eval", "import ctypes\n"
                          "ctypes.addressof(ctypes.c_char.from_buffer(memory))").out) + 8 * MUTEX
    with agent.Client(path) as by, agent.Client(path) as other:
        by.send(agent.frame(PAUSE, struct.pack("<III", FREEZES, 60000, 600000)))
        by.until(PAUSED)
        other.send(agent.evaluation("1"))
        by.until(FREEZE)
        shared[MUTEX] = 2  # locked, with a waiter
        by.send(agent.frame(FROZEN, struct.pack("<IQQQ", 1, address, 0, 0)))
        agent.wait_until(lambda: waits_for(counting.pid, address))
        by.send(agent.frame(agent.INTERRUPT))
        assert by.until(THAW)[-1][0] == THAW
        shared[MUTEX] = 0
        os.kill(counting.pid, signal.SIGSTOP)  # waiters check again after that
        agent.wait_until(lambda: support.thread_status(counting.pid)["State"][0] == "T")
        os.kill(counting.pid, signal.SIGCONT)
        kinds = [kind for kind, _ in by.until(agent.DONE)]
        assert FREEZE not in kinds and kinds[-1] == agent.DONE, kinds
        assert other.until(agent.DONE)[-1][0] == agent.DONE
    pauses.wait_until_runs(shared)


def hostile_frames(random, main):
    """All frames about a pause, complete or not, and steps of that thread; no client of such a pause stops
    threads."""
    kind = random.choice([PAUSE, RESUME, STEP, FROZEN, agent.INTERRUPT, agent.EVAL])
    if kind == agent.EVAL:
        return agent.evaluation("sum(range(1000))", total_ms=random.choice([0, 1, 50]))
    whole = {PAUSE: struct.pack("<III", random.choice([0, 2, 1 << 31]), 2000, random.randrange(1, 40)),
             STEP: struct.pack("<IIQ", random.choice([0, 1, 5000]), random.randrange(5),
                               random.choice([main, random.getrandbits(64)])),
             FROZEN: struct.pack("<IQQQ", random.getrandbits(32), 0, random.getrandbits(64), random.getrandbits(64))}
    payload = whole.get(kind, b"") + bytes(random.randrange(3))
    return agent.frame(kind, payload[:random.choice([len(payload), random.randrange(len(payload) + 1)])])


@pytest.mark.parametrize("seed", range(support.count(4, 100)))
def test_any_frames_at_any_time(seed, counting, shared, probing):
    """From some clients at once, that leave without a word: nothing of that keeps the program."""
    path, random = agent.load(probing, counting.pid), Random(seed)
    main = int(probing(counting.pid, "eval", "threading.main_thread().ident").out)
    for _ in range(20):
        clients = [agent.Client(path) for _ in range(3)]
        for _ in range(random.randrange(1, 12)):
            try:
                random.choice(clients).send(hostile_frames(random, main))
            except (BrokenPipeError, ConnectionResetError):
                pass  # the agent has ended that connection
        for client in clients:
            client.close()
        pauses.wait_until_runs(shared)
    agent.wait_until(lambda: probing(counting.pid, "eval", "1 + 1").out == "2\n", 60)
    with pauses.pause_when_free(counting.pid) as pause:
        assert probing(counting.pid, "eval", "1 + 1").out == "2\n"
        pause.interrupt()
    pauses.wait_until_runs(shared)


def test_only_one_pauses(counting, shared):
    with Pause(counting.pid) as first:
        with Pause(counting.pid, wait=False) as second:
            _, err = second.process.communicate(timeout=60)
            assert second.process.returncode == FAILED and b"is paused already, by process" in err, err
        first.interrupt()
    pauses.wait_until_runs(shared)


def test_killed_at_any_moment(counting, shared, probing):
    """Killed at random moments, from its start to some time into the pause: the program always runs again."""
    agent.load(probing, counting.pid)
    for delay in [0.001 * step for step in range(0, support.count(40, 200), 2)]:
        with Pause(counting.pid, wait=False) as pause:
            time.sleep(delay)
            pause.kill()
        pauses.wait_until_runs(shared)
        assert pauses.nobody_traced(counting.pid)


def test_killed_while_code_is_evaluated(counting, shared, probing):
    with Pause(counting.pid) as pause:
        socket = json.loads(probing(counting.pid, "agent", "status", "--json").out)["socket"]
        with agent.Client(socket) as client:
            client.send(agent.evaluation("import time\nprint('begun')\ntime.sleep(1)"))
            assert client.receive()[0] == agent.STDOUT
            pause.kill()
            pauses.wait_until_runs(shared)
            frames = client.until(agent.DONE)
    assert frames[-1][0] == agent.DONE, frames
    assert pauses.nobody_traced(counting.pid)


def test_code_without_end_is_interrupted(counting, shared, probing):
    with Pause(counting.pid) as pause:
        done = probing(counting.pid, "eval", "--timeout", "1s", "while True: pass")
        assert done.code == TIMEOUT, done
        assert probing(counting.pid, "eval", "1 + 1").out == "2\n"  # when the loop has ended
        before = pauses.total(shared)
        assert probing(counting.pid, "eval", "1 + 2").out == "3\n"
        assert pauses.total(shared) == before
        pause.interrupt()
    pauses.wait_until_runs(shared)


def test_clients_that_come_and_go(counting, shared, probing):
    """More of them than the agent takes at once."""
    with Pause(counting.pid):
        before = pauses.total(shared)
        for number in range(40):
            assert probing(counting.pid, "eval", str(number)).out == "%d\n" % number
        assert pauses.total(shared) == before


@pytest.mark.parametrize("interpreter", [
    each for each in ALL if each.has_ctypes and not each.free_threaded], ids=repr)
def test_a_gil_that_is_not_free(interpreter, target, probing):
    """One call in C holds it until it is released by the test."""
    process = target("evaluated.py", "gil", interpreter=interpreter)
    agent.load(probing, process.pid)
    process.send(b"x")
    assert process.line() == "holds"
    support.wait_for_sleep(process.pid, "pipe_read", process.pid)
    with Pause(process.pid, "--within", "300ms", wait=False) as pause:
        out, err = pause.process.communicate(timeout=60)
        assert pause.process.returncode == TIMEOUT and b"--hard" in err and not out, (out, err)
    with Pause(process.pid, "--hard") as pause:
        pause.interrupt()
    process.send(b"x")
    assert process.line() == "held"


@pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
def test_hard(interpreter, target, shared, probing):
    process = target("counting.py", shared.path, "16", interpreter=interpreter)
    with Pause(process.pid, "--hard") as pause:
        assert pause.begun["by"] == "ptrace"
        before = pauses.total(shared)
        dump = support.dump(process.pid, "--locals")
        stacks = [support.python_frames(thread) for thread in dump["threads"]]
        assert sum(any(frame["func"] == "work" for frame in stack) for stack in stacks) == 16
        done = probing(process.pid, "query", "SELECT count(DISTINCT tid) FROM python.stacks")
        assert done.code == OK, done
        assert pauses.total(shared) == before
        pause.interrupt()
    pauses.wait_until_runs(shared)
    with Pause(process.pid, "--hard") as pause:
        assert probing(process.pid, "resume").code == OK
        assert pause.end()["reason"] == "interrupted"
    pauses.wait_until_runs(shared)
    with Pause(process.pid, "--hard", "--max", "200ms") as pause:
        assert pause.end()["reason"] == "deadline"
    pauses.wait_until_runs(shared)
    with Pause(process.pid, "--hard") as pause:
        pause.kill()
    pauses.wait_until_runs(shared)
    assert pauses.nobody_traced(process.pid)


def test_stopped_ourselves(counting, shared):
    """SIGSTOP, which nothing can catch: the kernel ends us when the time is up."""
    with Pause(counting.pid, "--hard", "--max", "100ms", "--within", "5s") as pause:
        pause.process.send_signal(signal.SIGSTOP)
        pauses.wait_until_runs(shared)


@pytest.mark.parametrize("options", [[], ["--hard"]], ids=["agent", "hard"])
def test_served_elsewhere(options, counting, shared, probing):
    with Pause(counting.pid, "--address=127.0.0.1:0", *options) as pause:
        at, env = pause.begun["address"], {"PROBING_AUTH_TOKEN": pause.begun["token"]}
        before = pauses.total(shared)
        done = probing("-t", at, "query", "-f", "json", "SELECT count(*) AS n FROM python.stacks", env=env)
        assert done.code == OK and json.loads(done.out)[0]["n"] > 0, done
        if not options:
            done = probing("-t", at, "eval", "sum(shared[:16])", env=env)
            assert done.out == "%d\n" % before, done
        assert pauses.total(shared) == before
        if not options:
            assert probing("-t", at, "step", "--time", "50ms", env=env).code == OK
            assert pauses.total(shared) > before
        done = probing("-t", at, "resume", env=env)
        assert done.code == OK or options, done
        assert pause.end()["reason"] in ("resume", "interrupted")
    pauses.wait_until_runs(shared)


def test_until_the_client_has_left(counting, shared, probing):
    with Pause(counting.pid, "--address=127.0.0.1:0", "--once") as pause:
        env = {"PROBING_AUTH_TOKEN": pause.begun["token"]}
        assert probing("-t", pause.begun["address"], "eval", "1 + 1", env=env).out == "2\n"
        assert pause.end()["reason"] == "interrupted"
    pauses.wait_until_runs(shared)


SUPERVISOR = """
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", "import time\\nwhile True: time.sleep(0.01)"])
print(worker.pid, flush=True)
sys.stdin.read()
worker.kill()
worker.wait()
"""


@pytest.mark.parametrize("name, options, says", [
    ("gunicorn", ["app"], "kills a worker that does not report within 30 s;"),
    ("gunicorn", ["--timeout=3", "app"], "kills a worker that does not report within 3.0 s;"),
    ("gunicorn", ["-t", "4", "app"], "kills a worker that does not report within 4.0 s;"),
    ("gunicorn", ["--timeout", "1200", "app"], None),
    ("uwsgi", ["--http", ":0"], "takes longer than it is configured to;"),
    ("celery", ["worker", "--time-limit=20"], "whose task takes longer than 20 s;"),
    ("torchrun", ["train.py"], "restarts a job's processes if one of them fails;"),
    ("gunicorn-like", ["app"], None)])
def test_supervisors_are_named(name, options, says, tmp_path, newest):
    program = tmp_path / name
    program.write_text(SUPERVISOR)
    with subprocess.Popen([newest.exe, str(program), *options], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=newest.env) as parent:
        pid = int(parent.stdout.readline())
        with Pause(pid, "--hard") as pause:
            pause.process.send_signal(signal.SIGINT)
            err = pause.process.communicate(timeout=60)[1].decode()
        parent.stdin.close()
    if says:
        assert "process %d, which started it, is %s: it " % (parent.pid, name) in err, err
        assert says + " --max limits the pause" in err, err
    else:
        assert "which started it" not in err, err


def test_watchdogs_are_named(target, shared, newest):
    process = target("counting.py", shared.path, "1",
                     env={"WATCHDOG_USEC": "30000000", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "480",
                          "WORLD_SIZE": "8", "RAY_JOB_ID": "01000000"})
    with Pause(process.pid) as pause:
        pause.process.send_signal(signal.SIGINT)
        err = pause.process.communicate(timeout=60)[1].decode()
    assert "within 30 s" in err and "8 m" in err and "WORLD_SIZE" in err and "Ray" in err, err


def test_words(counting, probing, tmp_path):
    done = probing(counting.pid, "debug", "--pause", "--dump")
    assert done.code == USAGE, done
    snapshot = tmp_path / "one.snap"
    assert probing(counting.pid, "snapshot", "-o", snapshot).code == OK
    assert "cannot be paused: nothing runs in it" in probing(snapshot, "debug", "--pause").err


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6), (3, 6)), ids=repr)
def test_threads_whose_gil_is_not_known(interpreter, shared, probing, tmp_path):
    """Before 3.7 only symbols show where threads wait for the GIL: without them no thread is stopped, and
    a message says so."""
    exe = Path(interpreter.exe).resolve()
    home = exe.parent.parent
    libraries = list(home.glob("lib/libpython3.6*.so.1.0"))
    stripped = tmp_path / (libraries + [exe])[0].name
    shutil.copy((libraries + [exe])[0], stripped)
    strip(stripped)
    env = dict(interpreter.env, PYTHONHOME=str(home),
               **({"LD_PRELOAD": str(stripped)} if libraries else {}))
    with support.Program([exe if libraries else stripped,
                          support.HERE / "programs" / "counting.py", shared.path, "4"],
                         env=env) as process:
        assert process.line() == "ready"
        with Pause(process.pid) as pause:
            for _ in range(10):
                done = probing(process.pid, "eval", "1 + 1")
                assert (done.code, done.out) == (OK, "2\n"), done
                assert "some of its threads could run" in done.err, done
            pause.interrupt()
        pauses.wait_until_runs(shared)
        assert pauses.nobody_traced(process.pid)


@pytest.mark.parametrize("interpreter", [each for each in support.INTERPRETERS if each not in ALL],
                         ids=repr)
def test_builds_without_a_gil_that_nothing_stops(interpreter, target, shared):
    """No function of 3.13 that stops them can be called; --hard does without."""
    process = target("counting.py", shared.path, "8", interpreter=interpreter)
    with Pause(process.pid, wait=False) as pause:
        _, err = pause.process.communicate(timeout=60)
        assert pause.process.returncode == UNSUPPORTED and b"--hard" in err, err
    pauses.wait_until_runs(shared)
