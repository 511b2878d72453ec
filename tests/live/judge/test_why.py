# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why`: planted faults are found with their evidence, and healthy programs are left alone."""
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import support
from environment import wait_until

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
EACH = pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
NO_PROCESS, DEADLOCK, STOPPED, GIL, UNKNOWN = 6, 10, 12, 14, 20
# Findings about the memory and the processors of the machine are none of these programs'.
OF_THE_MACHINE = {("memory_limit", "memory"), ("swapped", "memory"), ("oom_killed", "memory"), ("slow", "processor")}


def why(*words):
    done = subprocess.run([support.BINARY, "why", *map(str, words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def findings(*words):
    """What is found about one target, without what is due to the machine."""
    code, out, err = why("--json", *words)
    assert err == "" and (code == 0 or code >= 10), (code, err)
    [target] = json.loads(out)["targets"]
    return [each for each in target["findings"] if (each["rule"], each["kind"]) not in OF_THE_MACHINE]


@contextlib.contextmanager
def running(source, interpreter=NEWEST, **options):
    with support.Program([interpreter.exe, "-c", source], env=interpreter.env, **options) as program:
        program.line()
        yield program


TAKE = """
import threading
one, two, gate = threading.%(kind)s(), threading.%(kind)s(), threading.Barrier(3)
def take(first, second):
    with first:
        gate.wait()
        with second:
            pass
for number, pair in enumerate(%(pairs)s):
    threading.Thread(target=take, args=pair, daemon=True, name="taker-%%d" %% number).start()
gate.wait()
print(flush=True)
input()
"""
BOTH_ORDERS = "((one, two), (two, one))"


def until_found(pid, rule):
    """The one finding, as soon as it is that of the rule: threads need a moment to begin to wait."""
    found = []

    def is_there():
        found[:] = findings(pid)
        return [each["rule"] for each in found] == [rule]
    wait_until(is_there)
    return found[0]


@EACH
def test_a_deadlock_is_proven(interpreter):
    with running(TAKE % {"kind": "RLock", "pairs": BOTH_ORDERS}, interpreter) as program:
        found = until_found(program.pid, "deadlock")
        threads = {each["name"]: each["tid"] for each in support.dump(program.pid)["threads"]}
        pair = [threads["taker-0"], threads["taker-1"]]
        assert (found["kind"], found["confidence"], found["proof"]) == ("deadlock", "high", True)
        assert sorted(found["tids"]) == sorted(pair) and found["pids"] == []
        first, second = sorted(pair)
        assert found["sentence"].startswith("threads %d and %d wait for each other: %d taker-" % (first, second, first))
        assert found["sentence"].count("in `take` <string>:7") == 2
        assert {line["tid"] for line in found["evidence"]} == set(pair)
        code, out, err = why(program.pid)
        assert (code, err) == (DEADLOCK, "")
        names = [line.split("  ")[1] for line in out.splitlines() if line.startswith("  ") and line[2] != " "]
        assert names == ["evidence", "rests on", "confidence", "wrong if", "next"], out
        assert "high, proven: no thread that exists can end this" in out


def test_busy_locks_are_never_a_deadlock():
    """Threads are read one after the other: their waits, put together, may look like a circle."""
    source = """
import random, threading, time
one, two = threading.RLock(), threading.RLock()
def work():
    while True:
        with one:
            with two: time.sleep(random.random() / 1000)
        with two: time.sleep(random.random() / 1000)
        with one: time.sleep(random.random() / 1000)
for _ in range(6): threading.Thread(target=work, daemon=True).start()
print(flush=True)
input()
"""
    with running(source) as program:
        for _ in range(support.count(60, 800)):
            assert not [each for each in findings(program.pid) if each["kind"] == "deadlock"]
            done = subprocess.run([support.BINARY, "overview", str(program.pid)], stdout=subprocess.PIPE, check=True)
            assert b"deadlock" not in done.stdout


def test_the_same_locks_in_one_order_are_nothing():
    source = TAKE.replace("        gate.wait()\n", "") % {"kind": "RLock", "pairs": "((one, two), (one, two))"}
    with running(source.replace("gate.wait()\n", ""), NEWEST) as program:
        assert findings(program.pid) == []


def test_a_deadlock_that_a_limit_of_time_ends_is_not_proven():
    source = (TAKE % {"kind": "RLock", "pairs": BOTH_ORDERS}).replace(
        "        with second:\n            pass\n", "        second.acquire(timeout=600)\n")
    with running(source) as program:
        found = until_found(program.pid, "deadlock")
        assert not found["proof"] and "limit of time" in found["wrong_if"]


@EACH
def test_plain_locks_in_both_orders_are_a_deadlock(interpreter):
    """Their holders are proven; but any thread may release them, so that there is no way out is not."""
    with running(TAKE % {"kind": "Lock", "pairs": BOTH_ORDERS}, interpreter) as program:
        found = until_found(program.pid, "deadlock")
        threads = {each["name"]: each["tid"] for each in support.dump(program.pid)["threads"]}
        assert (found["kind"], found["confidence"], found["proof"]) == ("deadlock", "high", False)
        assert sorted(found["tids"]) == sorted([threads["taker-0"], threads["taker-1"]])
        assert found["sentence"].count("in `take` <string>:7") == 2
        assert "a thread outside of the circle releases one" in found["wrong_if"]


@EACH
def test_a_lock_of_a_thread_that_has_ended(interpreter):
    source = """
import threading
lock = threading.RLock()
thread = threading.Thread(target=lock.acquire)
thread.start()
thread.join()
print(flush=True)
lock.acquire()
"""
    with running(source, interpreter) as program:
        found = until_found(program.pid, "orphan")
        assert (found["confidence"], found["proof"], found["tids"]) == ("high", True, [program.pid])


def test_a_stopped_process():
    with running("print(flush=True)\ninput()") as program:
        os.kill(program.pid, signal.SIGSTOP)
        try:
            found = until_found(program.pid, "stopped")
            assert found["next"] == "kill -CONT %d" % program.pid and "SIGSTOP" in found["sentence"]
            assert why(program.pid)[0] == STOPPED
        finally:
            os.kill(program.pid, signal.SIGCONT)
        wait_until(lambda: not findings(program.pid))


def test_the_same_of_several_processes_is_said_once():
    with contextlib.ExitStack() as all_of_them:
        pids = [all_of_them.enter_context(running("print(flush=True)\ninput()")).pid for _ in range(8)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            until_found(pid, "stopped")
        out = why(*pids)[1]
        assert out.count("\nstopped: ") == 1, out
        assert "\n  also of     %s\n" % ", ".join(map(str, sorted(pids)[1:])) in out, out


SLEEPS_WITH_THE_GIL = """
import ctypes, threading, time
def call():
    ctypes.PyDLL(None).sleep(600)
def tick():
    while True:
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True, name="ticker").start()
print(flush=True)
call()
"""


def test_the_gil_held_by_a_sleeping_thread():
    with running(SLEEPS_WITH_THE_GIL) as program:
        until_found(program.pid, "gil_sleeps")
        # A thread that wants it wakes up every 5 ms to ask again, and may run when it is looked at.
        wait_until(lambda: "1 thread waits for it" in findings(program.pid)[0]["sentence"])
        found = next(each for each in (findings(program.pid)[0] for _ in range(100)) if "waits for it" in each["sentence"])
        assert found["rule"] == "gil_sleeps" and "in `call` <string>:4" in found["sentence"]
        assert (found["confidence"], found["kind"]) == ("high", "gil")
        assert why(program.pid)[0] == GIL
    # The same call that releases it.
    with running(SLEEPS_WITH_THE_GIL.replace("PyDLL", "CDLL")) as program:
        support.wait_for_sleep(program.pid, "nanosleep", program.pid)
        assert findings(program.pid) == []


PRINT = "\nprint(flush=True)\n"
HEALTHY = {
    "input": PRINT + "input()",
    "sleep": "import time" + PRINT + "time.sleep(600)",
    "sleeps shortly": "import time" + PRINT + "while True: time.sleep(0.001)",
    "busy": PRINT + "n = 0\nwhile True: n += 1",
    "busy threads": "import threading\ndef busy(n=0):\n    while True: n += 1\n"
                    "for _ in range(2): threading.Thread(target=busy, daemon=True).start()" + PRINT + "input()",
    "server": "import socket\ns = socket.create_server(('127.0.0.1', 0))" + PRINT + "s.accept()",
    "http server": "import http.server, socketserver\n"
                   "s = socketserver.ThreadingTCPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)"
                   + PRINT + "s.serve_forever()",
    "asyncio": "import asyncio\nasync def main():" + PRINT.replace("print", "    print") + "    await asyncio.sleep(600)\n"
               "asyncio.run(main())",
    "asyncio server": "import asyncio\nasync def serve(r, w): pass\nasync def main():\n"
                      "    s = await asyncio.start_server(serve, '127.0.0.1', 0)\n    print(flush=True)\n"
                      "    await s.serve_forever()\nasyncio.run(main())",
    "queue workers": "import queue, threading\nq = queue.Queue()\ndef work():\n    while True: q.get()\n"
                     "for _ in range(4): threading.Thread(target=work, daemon=True).start()" + PRINT + "input()",
    "simple queue": "import queue, threading\nq = queue.SimpleQueue()\n"
                    "threading.Thread(target=q.get, daemon=True).start()" + PRINT + "input()",
    "pool idle": "import concurrent.futures as f\np = f.ThreadPoolExecutor(4)\nlist(p.map(abs, range(9)))" + PRINT + "input()",
    "pool at work": "import concurrent.futures as f, time\np = f.ThreadPoolExecutor(4)\n"
                    "r = [p.submit(time.sleep, 600) for _ in range(4)]" + PRINT + "r[0].result()",
    "processes": "import concurrent.futures as f\nif __name__ == '__main__':\n    p = f.ProcessPoolExecutor(1)\n"
                 "    p.submit(abs, 1).result()\n    print(flush=True)\n    input()",
    "subprocess": "import subprocess\np = subprocess.Popen(['sleep', '600'])" + PRINT + "p.wait()",
    "communicates": "import subprocess\np = subprocess.Popen(['sleep', '600'], stdout=-1, stderr=-1)" + PRINT + "p.communicate()",
    "event, timed": "import threading\ne = threading.Event()" + PRINT + "while not e.wait(0.2): pass",
    "event and signal": "import signal, threading\ne = threading.Event()\n"
                        "signal.signal(signal.SIGTERM, lambda *_: e.set())" + PRINT + "e.wait()",
    "joins": "import threading, time\nt = threading.Thread(target=time.sleep, args=(600,), daemon=True)\nt.start()"
             + PRINT + "t.join()",
    "timer": "import threading\nthreading.Timer(600, print).start()" + PRINT + "input()",
    "condition": "import threading\nc = threading.Condition()\ndef wait():\n    with c: c.wait()\n"
                 "for _ in range(3): threading.Thread(target=wait, daemon=True).start()" + PRINT + "input()",
    "multiprocessing pool": "import multiprocessing as m\nif __name__ == '__main__':\n    p = m.get_context('fork').Pool(2)\n"
                            "    p.map(abs, [1])\n    print(flush=True)\n    input()",
    "manager": "import multiprocessing as m\nif __name__ == '__main__':\n    p = m.get_context('fork').Manager()\n"
               "    d = p.dict()\n    print(flush=True)\n    input()",
    "executor of a loop": "import asyncio, time\nasync def main():\n    loop = asyncio.get_running_loop()\n"
                          "    f = loop.run_in_executor(None, time.sleep, 600)\n    print(flush=True)\n    await f\n"
                          "asyncio.run(main())",
    "ends, and waits for a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()" + PRINT,
    "log listener": "import logging.handlers as h, queue\nh.QueueListener(queue.Queue()).start()" + PRINT + "input()",
    "pause": "import signal" + PRINT + "signal.pause()",
    "select": "import select, os\nr, w = os.pipe()" + PRINT + "select.select([r], [], [])",
    "short locks": "import threading, time\nl = threading.RLock()\ndef use():\n    while True:\n"
                   "        with l: time.sleep(0.001)\n"
                   "for _ in range(4): threading.Thread(target=use, daemon=True).start()" + PRINT + "input()",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_wrong(name):
    with running(HEALTHY[name], start_new_session=True) as program:
        try:
            for _ in range(3):
                assert findings(program.pid) == []
            code, out, err = why(program.pid)
            assert err == ""
            if not {"memory_limit", "swapped", "oom_killed", "slow"} & {line.split(":")[0] for line in out.splitlines()}:
                assert code == 0 and out.splitlines()[1] == "nothing is wrong", out
                assert "confidence  medium" in out
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


def test_all_threads_wait_for_each_other():
    """A program that nobody wakes is not called healthy, as soon as that may be said."""
    source = "import threading\ne = threading.Event()" + PRINT + "e.wait()"
    with running(source) as program:
        assert findings(program.pid) == []
        found = until_found(program.pid, "unknown")
        assert "only thread" in found["sentence"] and found["confidence"] == "low"
        assert why(program.pid)[0] == UNKNOWN


def test_idle_workers_of_a_pool_are_nothing():
    """They wait for a semaphore in memory that they share with each other, however long."""
    source = ("import multiprocessing as m\nif __name__ == '__main__':\n    p = m.get_context('fork').Pool(3)\n"
              "    p.map(abs, [1])\n    print(*[w.pid for w in p._pool], flush=True)\n    input()")
    with support.Program([NEWEST.exe, "-c", source], env=NEWEST.env) as program:
        workers = [int(word) for word in program.line().split()]
        for pid in workers:
            wait_until(lambda pid=pid: (support.dump(pid)["threads"][0]["idle_seconds"] or 12) > 11)
            assert findings(pid) == []


def test_all_processes():
    with running(PRINT + "input()") as well, running(TAKE % {"kind": "RLock", "pairs": BOTH_ORDERS}) as locked:
        until_found(locked.pid, "deadlock")
        code, out, _ = why("--json")
        targets = {each["pid"]: each for each in json.loads(out)["targets"]}
        assert targets[locked.pid]["verdict"] == "deadlock" and targets[well.pid]["verdict"] in ("nothing", "memory")
        assert code >= DEADLOCK
        code, out, _ = why(well.pid, locked.pid)
        assert code == DEADLOCK and out.index("\ndeadlock: ") > 0
        assert "memory" in out or "nothing is wrong with 1 process: %d\n" % well.pid in out


def test_files(tmp_path):
    with running(TAKE % {"kind": "RLock", "pairs": BOTH_ORDERS}) as program:
        until_found(program.pid, "deadlock")
        snapshot = tmp_path / "one.snapshot"
        subprocess.run([support.BINARY, str(program.pid), "snapshot", "-o", snapshot], check=True,
                       stderr=subprocess.DEVNULL)
        [found] = findings(snapshot)
        assert found["rule"] == "deadlock" and str(snapshot) in found["next"]
        assert why(snapshot)[1].splitlines()[0] == str(snapshot)


def test_what_cannot_be_judged_says_so():
    with support.Program(["sleep", "600"]) as other:
        [found] = findings(other.pid)
        assert found["rule"] == "unknown" and "not a Python process" in found["sentence"], found
        assert why(other.pid)[0] == UNKNOWN
    assert why("/nosuchprogram/")[0] == NO_PROCESS


def test_rules():
    rules = json.loads(why("--rules", "--json")[1])
    assert len({rule["rule"] for rule in rules}) == len(rules)
    lines = why("--rules")[1].splitlines()
    assert [line.split()[:2] for line in lines] == [[str(rule["exit_code"]), rule["rule"]] for rule in rules]


def used():
    """Processor seconds of the commands that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def test_fifty_threads_are_judged_at_once():
    source = """
import threading, time
for _ in range(50):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print(flush=True)
input()
"""
    with running(source) as program:
        best = 60.0
        for _ in range(20):
            start = used()
            assert findings(program.pid) == []
            best = min(best, used() - start)
        support.report("why: %.0f ms of a processor for a process of 51 threads" % (best * 1000))
        assert best < 0.1


def test_ended_children_that_nobody_reaps():
    source = "import os\nfor _ in range(20):\n    os.fork() or os._exit(0)\nprint(flush=True)\ninput()"
    with running(source) as program:
        until_found(program.pid, "zombies")
        wait_until(lambda: findings(program.pid)[0]["sentence"].startswith("20 children"))
        assert len(findings(program.pid)[0]["pids"]) == 20
    with running(source.replace("20", "3")) as program:
        assert findings(program.pid) == []


def test_many_wait_for_one_lock():
    source = """
import threading, time
lock = threading.RLock()
def hold():
    with lock:
        print(flush=True)
        time.sleep(600)
def want():
    with lock: pass
threading.Thread(target=hold, daemon=True, name="holder").start()
for _ in range(3): threading.Thread(target=want, daemon=True, name="wants").start()
input()
"""
    with running(source) as program:
        found = until_found(program.pid, "locks")
        wait_until(lambda: "3 threads" in findings(program.pid)[0]["sentence"])
        found = findings(program.pid)[0]
        assert "held by" in found["sentence"] and " holder, which is in `hold` <string>:7, idle" in found["sentence"]
        assert len(found["tids"]) == 4 and not found["proof"]


def test_one_waiter_is_nothing_until_it_has_waited_long():
    source = """
import threading, time
lock = threading.RLock()
def hold():
    with lock:
        print(flush=True)
        time.sleep(600)
threading.Thread(target=hold, daemon=True, name="holder").start()
time.sleep(0.1)
with lock: pass
"""
    with running(source) as program:
        assert findings(program.pid) == []
        found = until_found(program.pid, "locks")
        assert "1 thread waits for locks" in found["sentence"]


@contextlib.contextmanager
def group(controller, **settings):
    """A control group of our own, where one may be made: a function that puts a process into it."""
    path = "/sys/fs/cgroup/%s/probing-why-%d" % (controller, os.getpid())
    try:
        os.mkdir(path)
        if not os.path.exists(path + "/cgroup.procs"):
            os.rmdir(path)
            raise FileNotFoundError(path + "/cgroup.procs")
    except OSError as error:
        pytest.skip("no control group can be made here: %s" % error)
    moved = []

    def put(pid):
        moved.append(pid)
        with open(path + "/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(pid))

    def write(name, text):
        with open("%s/%s" % (path, name), "w", encoding="ascii") as file:
            file.write(text)
    try:
        for name, value in settings.items():
            write("%s.%s" % (controller, name), str(value))
        yield put, write
    finally:
        def remove():
            with contextlib.suppress(OSError):
                os.rmdir(path)
            return not os.path.exists(path)
        wait_until(remove)


@pytest.mark.parametrize("controller, name, on, off", [
    ("freezer", "freezer.state", "FROZEN", "THAWED"), ("unified", "cgroup.freeze", "1", "0"), (".", "cgroup.freeze", "1", "0")])
def test_a_frozen_group(controller, name, on, off):
    with group(controller) as (put, write), running("import time\nprint(flush=True)\ntime.sleep(600)") as program:
        put(program.pid)
        assert findings(program.pid) == []
        write(name, on)
        try:
            found = until_found(program.pid, "frozen")
            assert (found["kind"], found["confidence"]) == ("stopped", "high")
            assert found["evidence"][0]["text"].lower().endswith(("frozen", "frozen 1"))
        finally:
            write(name, off)


def test_a_throttled_group():
    with group("cpu", cfs_period_us=20000, cfs_quota_us=1000) as (put, _):
        with running("print(flush=True)\nn = 0\nwhile True: n += 1") as program:
            put(program.pid)
            found = until_found(program.pid, "throttled")
            assert "quota in µs: 1000" in found["evidence"][0]["text"] and found["confidence"] == "high"
        with running("import time\nprint(flush=True)\ntime.sleep(600)") as program:
            put(program.pid)
            wait_until(lambda: findings(program.pid) == [])


def test_a_group_in_which_the_oom_killer_was():
    source = "import os\nprint(flush=True)\ninput()\nif not os.fork(): bytearray(1 << 28)\nos.wait()\nprint(flush=True)\ninput()"
    with group("memory", limit_in_bytes=64 << 20) as (put, _), running(source) as program:
        put(program.pid)
        program.send(b"\n")
        program.line()
        [target] = json.loads(why("--json", program.pid)[1])["targets"]
        [found] = [each for each in target["findings"] if each["rule"] == "oom_killed"]
        assert found["sentence"].startswith("the OOM killer has killed 1 process of") and found["confidence"] == "low"


def core_of(process, folder):
    """A core that the kernel writes of a hung program."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern != "core":
        pytest.skip("cores of the kernel go to %r here" % pattern)
    os.kill(process.pid, signal.SIGABRT)
    process.wait()
    core, = [*folder.glob("core"), *folder.glob("core.%d" % process.pid)]
    return core


@EACH
def test_a_core_of_a_deadlock(interpreter, tmp_path):
    limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with running(TAKE % {"kind": "Lock", "pairs": BOTH_ORDERS}, interpreter, cwd=tmp_path,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, limit)) as program:
        tids = until_found(program.pid, "deadlock")["tids"]
        core = core_of(program, tmp_path)
    found = {each["rule"]: each for each in findings(core, "--exe", interpreter.exe)}
    assert found["deadlock"]["tids"] == tids and found["deadlock"]["confidence"] == "high", found


def test_a_core_of_a_killed_process(tmp_path):
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern != "core":
        pytest.skip("cores of the kernel go to %r here" % pattern)
    no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with running("import ctypes\nprint(flush=True)\ndef crash():\n    input()\n    ctypes.string_at(8)\ncrash()",
                 cwd=tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, no_limit)) as program:
        program.send(b"\n")
        program.wait()
        core, = [*tmp_path.glob("core"), *tmp_path.glob("core.%d" % program.pid)]
        [found] = findings(core)
        assert (found["rule"], found["confidence"]) == ("killed", "high")
        assert "killed by SIGSEGV" in found["sentence"] and "in `string_at` " in found["sentence"]


NAN = """
import sys
sys.path.insert(0, %r)
import probing
probing.watch("loss", "other")
def train():
    for step in range(40):
        loss, other = float("nan") if step in %s else 0.5, "text"
        probing.step()
train()
print(flush=True)
input()
"""


@pytest.mark.parametrize("steps, since", [("range(15, 40)", 15), ("range(40)", 0), ("(3, 4, 20, 39)", None),
                                          ("()", None)])
def test_a_loss_that_is_nan(steps, since, tmp_path):
    tmp_path.chmod(0o700)
    agent = Path(support.BINARY).with_name("libprobing-agent.so")
    env = {"PROBING_DATA_DIR": str(tmp_path), "PROBING_AGENT": str(agent)}
    source = NAN % (str(Path(__file__).resolve().parents[3] / "package"), steps)
    with support.Program([NEWEST.exe, "-c", source], env=dict(NEWEST.env, **env)) as program:
        program.line(timeout=100)
        found = [each for each in findings(program.pid) if each["rule"] == "nan"]
        first = subprocess.run([support.BINARY, str(program.pid), "query", "-f", "json",
                                "SELECT min(step) AS step FROM python.variables"], capture_output=True, check=True,
                               env=dict(os.environ, **env))
    if since is None:
        assert found == []
        return
    [nan] = found
    step = json.loads(first.stdout)[0]["step"] + since
    assert nan["sentence"] == ("the watched value loss is NaN since step %d" % step if since else
                               "the watched value loss is NaN at all recorded steps, from %d on" % step)
    assert nan["confidence"] == ("high" if since else "medium") and nan["kind"] == "nan", nan
    assert "%d rows are NaN" % (40 - since) in json.dumps(nan["evidence"])


FULL = """
import sys, time
file = open(sys.argv[1], "wb", 0)
try:
    while True:
        file.write(b"x" * 65536)
except OSError:
    print(flush=True)
if sys.argv[2] == "shrink":
    file.truncate(0)
print(flush=True)
time.sleep(100000)
"""
ON_LITTLE = 'mount -t tmpfs -o size=1m none "$1" && shift && exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("then, size", [("stay", "1m"), ("shrink", "1m"), ("stay", "32k"), ("shrink", "32k")])
def test_a_file_system_without_room(then, size, tmp_path):
    words = ["unshare", "-m", "sh", "-c", ON_LITTLE.replace("1m", size), "sh", str(tmp_path), NEWEST.exe, "-c", FULL, str(tmp_path / "log"), then]
    with support.Program(words, env=NEWEST.env) as program:
        program.line()
        program.line()
        found = [each for each in findings(program.pid) if each["rule"] == "full"]
    if then == "shrink":
        assert found == []
        return
    [full] = found
    assert full["kind"] == "room" and full["code"] == 25 and full["confidence"] == "medium", full
    assert str(tmp_path / "log") in full["sentence"] and "0 kB of %s are free" % {"1m": "1.0 MiB", "32k": "32.0 KiB"}[size] in full["sentence"]


POOL = """
import queue, sys, threading, time
class Connection:
    def __init__(self, number):
        self.number = number
class QueuePool:
    def __init__(self, size):
        self._pool = queue.Queue()
        for number in range(size):
            self._pool.put(Connection(number))
    def _do_get(self):
        return self._pool.get()
pool = QueuePool(2)
def holds():
    connection = pool._do_get()
    time.sleep(100000)
def wants():
    pool._do_get()
for name, function in ("first", holds), ("second", holds), ("third", wants), ("fourth", wants):
    threading.Thread(target=function, name=name, daemon=True).start()
    time.sleep(0.1)
print(flush=True)
time.sleep(100000)
"""


@pytest.mark.parametrize("size", [2, 4])
def test_a_pool_at_its_limit(size, tmp_path):
    script = tmp_path / "sqlalchemy" / "pool" / "impl.py"
    script.parent.mkdir(parents=True)
    script.write_text(POOL.replace("QueuePool(2)", "QueuePool(%d)" % size))
    with support.Program([NEWEST.exe, str(script)], env=NEWEST.env) as program:
        program.line()
        if size == 4:
            wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 1.5)
            assert [each for each in findings(program.pid) if each["rule"] == "pool"] == []
            return
        pool = until_found(program.pid, "pool")
    assert pool["sentence"].startswith("2 threads wait for a connection of a pool of SQLAlchemy, all of which are in use; 2 threads "
                                       "have one: "), pool
    assert pool["kind"] == "locks" and pool["confidence"] == "medium" and len(pool["tids"]) == 2
    assert all("has a Connection in connection of `holds`" in line["text"] for line in pool["evidence"][:2]), pool


def test_limits(probing):
    listed = {row["key"]: row for row in json.loads(probing("config", "--limits", "--json").out)}
    assert listed["still"]["value"] == listed["still"]["default"] == 20
    env = dict(os.environ, PROBING_LIMITS="still=60,swapped=1000.5")
    shown = subprocess.run([support.BINARY, "config", "--limits"], env=env, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "\nstill        60      s   nothing has run for so long\n" in shown and "\nswapped      1000.5  MB" in shown
    for wrong in "stay=60", "still", "still=", "still=-1", "memory=101", "still=60,nan=x", "still=nan", "still=60 ":
        done = subprocess.run([support.BINARY, "why", str(os.getpid())], env=dict(os.environ, PROBING_LIMITS=wrong),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2 and b"is no limit" in done.stderr, (wrong, done)


def test_a_limit_is_used():
    """A second thread that waits for a lock is one of two, or of three."""
    source = """
import threading, time
lock = threading.RLock()
def hold():
    with lock:
        time.sleep(100000)
def want():
    with lock:
        pass
for function in hold, want, want:
    threading.Thread(target=function, daemon=True).start()
    time.sleep(0.1)
print(flush=True)
time.sleep(100000)
"""
    with support.Program([NEWEST.exe, "-c", source], env=NEWEST.env) as program:
        program.line()
        until_found(program.pid, "locks")
        done = subprocess.run([support.BINARY, "why", str(program.pid)], stdout=subprocess.PIPE, check=False,
                              env=dict(os.environ, PROBING_LIMITS="waiters=3,long=86400"))
        assert done.returncode == 0, done


def test_a_pause_is_no_fault(probing, target):
    """The GIL is the agent's then: the process is paused, and nothing of its own is to blame."""
    process = target("evaluated.py", "idle")
    pause = subprocess.Popen([support.BINARY, str(process.pid), "debug", "--pause", "--max", "60s"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    try:
        assert b"is paused" in pause.stdout.readline()
        wait_until(lambda: json.loads(probing(process.pid, "why", "--json").out)["targets"][0]["findings"])
        finding = json.loads(probing(process.pid, "why", "--json").out)["targets"][0]["findings"][0]
        assert finding["kind"] == "stopped" and finding["confidence"] == "medium" and finding["code"] == 12, finding
        assert finding["sentence"].startswith("the process is paused by probing, or evaluates code for it"), finding
        dump = probing(process.pid, "dump").out
        assert "\npaused by process %d since " % pause.pid in dump and "no thread paused" not in dump, dump
    finally:
        pause.kill()
        pause.wait()


SEMAPHORE = """
import threading, time
lock = threading.Semaphore(1)
def use():
    lock.acquire()
    time.sleep(100000)
    lock.release()
def signal():
    lock.acquire()
for number in range(2):
    threading.Thread(target=%s, daemon=True).start()
    time.sleep(0.1)
print(flush=True)
time.sleep(100000)
"""


@EACH
def test_a_semaphore_that_is_used_as_a_lock(interpreter):
    """Who has it is not known, so that nothing is wrong is not known, either."""
    with running(SEMAPHORE % "use", interpreter) as program:
        found = until_found(program.pid, "unknown")
        assert found["confidence"] == "low" and "for a lock or semaphore, and its holder is not known" in found["sentence"], found
        assert "waiting in Semaphore.acquire, holder unknown" in found["evidence"][0]["text"], found
    with running(SEMAPHORE % "signal", interpreter) as program:
        wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 1.5)
        assert findings(program.pid) == []


def test_the_chain_of_a_pool():
    """Its thread that only looks whether workers have ended is not what Pool.map waits for."""
    source = """
import multiprocessing, time
def work(_):
    time.sleep(100000)
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(flush=True)
    pool.map(work, range(1))
"""
    with running(source, start_new_session=True) as program:
        try:
            chain = []

            def leads_on():
                chain[:] = [json.loads(why("--json", program.pid)[1])["targets"][0]["chain"]]
                return chain[0] and "in `work`" in chain[0]
            wait_until(leads_on)
            assert "_handle_results) (lock) → " in chain[0] and "_handle_workers" not in chain[0], chain
        finally:
            os.killpg(program.pid, signal.SIGKILL)


def test_overview_knows_idle_queues():
    """It reads less of each process, and judges the same."""
    source = "import queue, threading\nthreading.Thread(target=queue.Queue().get, daemon=True).start()" + PRINT + "input()"
    with running(source) as program:
        wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 1.5)
        assert findings(program.pid) == []
        done = subprocess.run([support.BINARY, "overview", str(program.pid)], stdout=subprocess.PIPE, check=True)
        assert b"nothing is wrong with 1 process" in done.stdout and b"!" not in done.stdout, done.stdout.decode()


CLIENT = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
class Backend:
    def call(self):
        with socket.create_connection(server.getsockname()) as connection:
            print("ready", flush=True)
            %s
Backend().call()
"""


@pytest.mark.parametrize("how, found", [
    ("connection.recv(1)", True), ("connection.settimeout(1000); connection.recv(1)", True),
    # A server that waits for its client, whose port is any.
    ("server.accept()[0].recv(1)", False), ("threading.Event().wait()", False)])
def test_a_server_that_does_not_answer(how, found, monkeypatch):
    # The server's port is one of clients, unless it is told otherwise.
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    port = next(port for port in range(first - 1, 1024, -1) if is_free(port))
    with running(CLIENT.replace('("127.0.0.1", 0)', '("127.0.0.1", %d)' % port) % how) as program:
        monkeypatch.setenv("PROBING_LIMITS", "peer=0.3")
        # Not before it has waited for so long.
        wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 0.5, 60)
        told = [each for each in findings(program.pid) if each["rule"] == "silent_peer"]
        assert len(told) == found
        if found:
            assert (told[0]["confidence"], told[0]["code"]) == ("low", 29)
            assert "for 127.0.0.1:%d in `Backend.call`" % port in told[0]["sentence"]
        monkeypatch.setenv("PROBING_LIMITS", "peer=600")
        assert not [each for each in findings(program.pid) if each["rule"] == "silent_peer"]


def is_free(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0
