# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of `probing why` about what a process does with its time and memory: loop, slow, leak; and healthy twins."""
import contextlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import support
from environment import wait_until
from test_why import why

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
EACH = pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
LOOP, LEAK, GIL = 26, 27, 14

# Each computes for ever. The first part spins: nothing that it does changes anything.
SPINS = {
    "flag": "def spin():\n    done = False\n    while not done:\n        pass",
    "cell": "def spin():\n    done = [False]\n    def wait():\n        while not done[0]:\n            pass\n    wait()",
    "attribute": "class Job:\n    done = False\ndef spin():\n    job = Job()\n    while not job.done:\n        pass",
    "search": "def spin():\n    low, high, items, wanted = 0, 9, list(range(0, 20, 2)), 17\n    while low < high:\n"
              "        middle = (low + high) // 2\n        if items[middle] < wanted:\n            low = middle\n"
              "        else:\n            high = middle",
    "global": "DONE = 0\ndef spin():\n    while DONE == 0:\n        pass",
}
WORKS = {
    "count": "def work():\n    number = 0\n    while True:\n        number += 1",
    "attribute": "class Job:\n    number = 0\ndef work():\n    job = Job()\n    while True:\n        job.number += 1",
    "deep attribute": "class Job:\n    pass\ndef work():\n    job = Job()\n    job.part = Job()\n    job.part.part = Job()\n"
                      "    job.part.part.part = Job()\n    job.part.part.part.number = 0\n    while True:\n"
                      "        job.part.part.part.number += 1",
    "item": "def work():\n    counts = [[[[[[0]]]]]]\n    while True:\n        counts[0][0][0][0][0][0] += 1",
    "global": "NUMBER = 0\ndef work():\n    global NUMBER\n    while True:\n        NUMBER += 1",
    "iterator": "import itertools\ndef work():\n    for each in itertools.repeat(None):\n        pass",
    "call": "import zlib\ndef work():\n    check = zlib.compressobj()\n    while True:\n        check.compress(b'')",
    "function": "def step(x):\n    while x:\n        x -= 1\ndef work():\n    while True:\n        step(10)",
    "cell": "def work():\n    number = 0\n    def inner():\n        nonlocal number\n        while True:\n            number += 1\n"
            "    inner()",
    "caught": "def work():\n    while True:\n        try:\n            {}['x']\n        except KeyError:\n            pass",
    "sleep": "import time\ndef work():\n    done = False\n    while not done:\n        time.sleep(0.001)",
    "C": "def work():\n    total = sum(range(10 ** 12))",
    "generator": "def numbers():\n    while True:\n        yield 1\ndef work():\n    for each in numbers():\n        pass",
}


@contextlib.contextmanager
def running(source, interpreter=NEWEST, **options):
    with support.Program([interpreter.exe, "-c", source], env=interpreter.env, **options) as program:
        program.line()
        yield program


def of(rule, *words):
    [target] = json.loads(why("--json", *words)[1])["targets"]
    return [each for each in target["findings"] if each["rule"] == rule]


@EACH
@pytest.mark.parametrize("kind", sorted(SPINS))
def test_a_loop_without_a_change(kind, interpreter):
    """Before 3.10 the compiler makes no difference; a thread that waits for a processor is read less often."""
    with running(SPINS[kind] + "\nprint(flush=True)\nspin()", interpreter) as program:
        found = []

        def is_found():
            found[:] = of("loop", program.pid)
            return found
        wait_until(is_found, 60)
        [loop] = found
        assert (loop["kind"], loop["code"], loop["confidence"], loop["proof"]) == ("loop", LOOP, "medium", False), loop
        assert loop["tids"] == [program.pid] and "nothing changes in it: in `" in loop["sentence"], loop
        assert "another thread, a process" in loop["wrong_if"] and "looks in" in loop["evidence"][0]["text"], loop


@EACH
@pytest.mark.parametrize("kind", sorted(WORKS))
def test_a_program_that_computes(kind, interpreter):
    with running(WORKS[kind] + "\nprint(flush=True)\nwork()", interpreter) as program:
        for _ in range(support.count(2, 50)):
            assert of("loop", program.pid) == []


HOGS = """
import threading, time
def tick():
    while True:
        time.sleep(0.001)
def hog():
    for _ in range(10 ** 9):
        %s
threading.Thread(target=tick, daemon=True, name="ticker").start()
print(flush=True)
hog()
"""


def test_one_call_that_holds_the_gil():
    with running(HOGS % "sum(range(10 ** 11))") as program:
        found = []

        def is_found():
            found[:] = of("slow", program.pid)
            return [each for each in found if each["kind"] == "gil"]
        wait_until(is_found, 60)
        slow = next(each for each in found if each["kind"] == "gil")
        assert slow["code"] == GIL and slow["confidence"] == "medium" and "in one call, in `hog` <string>:8" in slow["sentence"], slow
        assert "1 thread waits for it" in slow["sentence"], slow


@pytest.mark.parametrize("loop", ["for _ in range(10 ** 9)", "while True"])
def test_short_calls_hold_nothing(loop):
    source = (HOGS % "sum(range(1000))").replace("for _ in range(10 ** 9)", loop)
    with running(source) as program:
        for _ in range(5):
            assert [each for each in of("slow", program.pid) if each["kind"] == "gil"] == []


def test_a_thread_without_a_processor():
    """Two that compute share one processor with the lowest priority of a third."""
    source = "import os\nos.sched_setaffinity(0, {%d})\nos.nice(%d)\nprint(flush=True)\nx = 0\nwhile True:\n    x += 1"
    cpu = max(os.sched_getaffinity(0))
    with running(source % (cpu, 0)), running(source % (cpu, 19)) as program:
        found = []

        def is_found():
            found[:] = of("slow", program.pid)
            return found
        wait_until(is_found, 60)
        [slow] = found
        assert slow["kind"] == "processor" and "wants to run and waits for a processor: " in slow["sentence"], slow
        assert slow["next"].endswith("perf --mode runqueue")


BUSY = "import os, sys, time\nos.sched_setaffinity(0, {int(sys.argv[1])})\nend = time.time() + 8\nwhile time.time() < end:\n    pass"


@contextlib.contextmanager
def crowd(count, cpu):
    """So many that compute on one processor, for some seconds."""
    busy = [subprocess.Popen([NEWEST.exe, "-c", BUSY, str(cpu)], env=NEWEST.env) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def test_a_loop_that_seldom_gets_a_processor():
    cpu = max(os.sched_getaffinity(0))
    source = "import os\nos.sched_setaffinity(0, {%d})\nos.nice(10)\n%s\nprint(flush=True)\nspin()" % (cpu, SPINS["flag"])
    with running(source) as program, crowd(5, cpu):
        loops = []
        wait_until(lambda: loops.extend(of("loop", program.pid)) or loops)
    # In a quarter of a second it does not run often enough.
    assert re.search(r"looks in ([3-9]\d\d ms|[12]\.?\d* s)", loops[0]["evidence"][0]["text"]), loops


def test_a_machine_that_is_overloaded():
    """Many want a processor: that is said, with low confidence."""
    cpu = max(os.sched_getaffinity(0))
    source = "import os\nos.sched_setaffinity(0, {%d})\nprint(flush=True)\nx = 0\nwhile True:\n    x += 1" % cpu
    with running(source) as program, crowd(4 * os.cpu_count(), cpu):
        slow = []
        wait_until(lambda: slow.extend(of("slow", program.pid)) or slow)
    assert slow[0]["confidence"] == "low" and "; the machine is overloaded: " in slow[0]["sentence"], slow


GROWS = "import time\nkept = []\nprint(flush=True)\nwhile True:\n    %s\n    time.sleep(0.02)"


def test_memory_that_grows():
    with running(GROWS % "kept.append(bytearray(200000))") as program:
        code, out, err = why("--look", "6s", program.pid)
        assert code == LEAK and not err, (code, out, err)
        assert "leak: its memory grows all the time: by " in out and "memory --growth" in out and "confidence  low" in out, out


@pytest.mark.parametrize("what", ["pass", "kept[:] = [bytearray(2000000)]",
                                  "kept[:] = [] if len(kept) > 40 else kept + [bytearray(400000)]"])
def test_memory_that_stays(what):
    with running(GROWS % what) as program:
        assert of("leak", "--look", "6s", program.pid) == []


@pytest.mark.parametrize("grows", [True, False])
def test_the_rows_that_a_process_keeps(grows, tmp_path):
    tmp_path.chmod(0o700)
    agent = Path(support.BINARY).with_name("libprobing-agent.so")
    env = {"PROBING_DATA_DIR": str(tmp_path), "PROBING_AGENT": str(agent), "PROBING_MEMORY_INTERVAL": "0.1"}
    package = str(Path(__file__).resolve().parents[3] / "package")
    source = "import sys\nsys.path.insert(0, %r)\nimport probing\nprobing.init()\n" % package
    source += GROWS % ("kept.append(bytearray(200000))" if grows else "pass")

    def said(limits):
        done = subprocess.run([support.BINARY, "why", "--json", str(program.pid)], stdout=subprocess.PIPE, check=False,
                              env=dict(os.environ, PROBING_LIMITS=limits, **env))
        return [each for each in json.loads(done.stdout)["targets"][0]["findings"] if each["rule"] == "leak"]

    def rows():
        done = subprocess.run([support.BINARY, str(program.pid), "query", "-f", "json", "SELECT count(*) AS n FROM memory_usage"],
                              stdout=subprocess.PIPE, check=False, env=dict(os.environ, **env))
        return done.returncode == 0 and json.loads(done.stdout)[0]["n"]

    with support.Program([NEWEST.exe, "-c", source], env=dict(NEWEST.env, **env)) as program:
        program.line(timeout=100)
        wait_until(lambda: rows() > 40)
        # Of less than a minute nothing is said.
        assert said("leak=10") == []
        if not grows:
            assert said("leak_for=2") == []
            return
        wait_until(lambda: said("leak_for=2"))
        [leak] = said("leak_for=2")
        assert leak["kind"] == "leak" and "rows of memory_usage in " in leak["rests_on"], leak
        assert leak["evidence"][0]["text"].startswith("resident: "), leak
