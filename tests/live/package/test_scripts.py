# SPDX-License-Identifier: GPL-3.0-or-later
"""The package's scripts, on programs with the content that they search for."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import support
import training
from environment import PROGRAMS, wait_until
from scripts import run

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "package/probing/scripts"


def shown(name, process, *arguments):
    result = run("script", name, process.pid, *arguments)
    assert (result.code, result.err) == (0, ""), result
    return result.out


def shown_once(name, process, wanted, *arguments, text=None):
    """The output as soon as the program has reached that state. @text: goes into the file."""
    if text:
        name.write_text(text)
    end = time.monotonic() + 30
    while True:
        out = shown(name, process, *arguments)
        if re.search(wanted, out):
            return out
        assert time.monotonic() < end, out


@pytest.fixture
def circle(target, newest):
    return target("circle.py")


def test_all_are_listed():
    listed = dict(line.split(maxsplit=1) for line in run("script", "--list").out.splitlines())
    assert sorted(listed) == sorted(path.stem for path in SCRIPTS.glob("*.py"))
    for path in SCRIPTS.glob("*.py"):
        assert listed[path.stem] in path.read_text()
        assert len(path.read_text().splitlines()) <= 110


def test_all_run_where_there_is_nothing_to_find(target, newest, tmp_path):
    process = target("sleeper.py")
    saved = tmp_path / "earlier.snapshot"
    assert not run("snapshot", process.pid, "-o", saved).code
    wanted = {"holders": ["SourceFileLoader"], "changes": [saved], "event_loop": [0.2]}
    for path in SCRIPTS.glob("*.py"):
        arguments = wanted.get(path.stem, [])
        assert shown(path.stem, process, *arguments)
    assert "There is no deadlock" in shown("deadlocks", process)
    result = run("script", "holders", process.pid, "Nothing")
    assert result.code == 1 and "no object of the class Nothing" in result.err


def test_deadlocks(circle):
    out = shown_once("deadlocks", circle, "Deadlock")
    assert out.startswith("Deadlock of 2 threads:\n") and out.count("Deadlock") == 1
    assert re.search(r" one has waited \d+ s for the RLock of \d+ two\n    take ", out)
    assert re.search(r" two has waited \d+ s for the RLock of \d+ one\n    take ", out)


def test_who_waits_without_a_deadlock(target, newest):
    process = target("walked.py")
    out = shown_once("deadlocks", process, "waits for the RLock").splitlines()
    assert out[0].startswith("There is no deadlock"), out
    assert re.match(r"\d+ wanter waits for the RLock of %d MainThread, which is " % process.pid,
                    out[1]), out


def test_the_demo(target, newest):
    """The output of `make demo`."""
    process = target(ROOT / "docs" / "demo.py")
    shown_once("deadlocks", process, r"(?m)^There is no deadlock: .*\n\d+ evaluate waits for the RLock of \d+ checkpoint")
    assert "run script deadlocks $pid\n" in (ROOT / "build-aux" / "demo").read_text()


def test_containers_and_holders(circle):
    first = shown("containers", circle, "2").splitlines()
    assert re.match(r" +50000 items  dict at 0x\w+, held by .*\blarge\b", first[0]), first
    assert len(first) == 2
    by_class = shown("holders", circle, "Kept")
    assert by_class == shown("holders", circle, *circle.ready)
    assert re.search(r"^Kept at .* is held by:\n", by_class)
    assert re.search(r"^  Keeper at 0x\w+\.kept$", by_class, re.M)
    assert re.search(r"^  list at 0x\w+\[0\]$", by_class, re.M)


def test_pools_and_queues(circle):
    out = shown_once("pools", circle, r"(?s)(pool_\d in .*){2}")
    assert "pool pool: 2 of 2 threads started\n" in out and "3 × work waits for a thread\n" in out
    assert re.search(r"pool idle: 1 of 1 threads started\n  idle_0 waits for work\n", out)
    out = shown_once("queues", circle, "putter")
    assert re.search(r"^Queue at 0x\w+: 3 items of at most 3, 3 unfinished; putter in put\(\)$",
                     out, re.M)


def test_tasks(target, newest):
    process = target("asyncio_shapes.py")
    out = shown("tasks", process)
    assert re.search(r"^\S.*, waits for .*\n  \S.*, waits for ", out, re.M), out


TASKS = """
import asyncio
async def ticks():
    while True:
        await asyncio.sleep(0.05)
async def takes(queue):
    while True:
        await queue.get()
async def gives(queue):
    while True:
        queue.put_nowait(1)
        await asyncio.sleep(0.03)
async def stays():
    await asyncio.Event().wait()
async def sleeps():
    await asyncio.sleep(600)
async def main():
    queue = asyncio.Queue()
    print(flush=True)
    await asyncio.gather(ticks(), takes(queue), gives(queue), stays(), sleeps())
asyncio.run(main())
"""


def test_tasks_that_stay(newest):
    """A task that sleeps again and again has not stayed there. A future may lie where the last one was: of `takes` nothing is known."""
    with support.Program([newest.exe, "-c", TASKS], env=newest.env) as program:
        program.line()
        wait_until(lambda: "sleeps" in shown("tasks", program))
        for _ in range(3):
            out = shown("tasks", program, "1")
            found = re.findall(r"^ *\S+ (\w+) pending,.* and so at 13 looks in 1 s$", out, re.M)
            assert [each for each in found if each != "takes"] == ["main", "stays", "sleeps"], out


def test_web_requests(target, newest):
    out = shown_once("web_requests", target("serves.py"), "sleep")
    assert re.match(r"\d+ server serves GET /slow/page, in serve .*serves.py:\d+, ", out), out


ARBITER = """
import os, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gunicorn.workers.sync import SyncWorker
class Arbiter:
    WORKERS = {}
Arbiter.__module__ = "gunicorn.arbiter"
arbiter = Arbiter()
for age in (1, 2):
    worker = SyncWorker()
    worker.age, worker.nr = age, 0
    pid = os.fork()
    worker.pid = pid or os.getpid()
    if not pid:
        worker.nr = 40 + age
        worker.run()
    arbiter.WORKERS[pid] = worker
print("ready", *arbiter.WORKERS)
sys.stdout.flush()
time.sleep(1000)
"""
SYNC = """
import ctypes, os, signal, time
class SyncWorker:
    def run(self):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        while True:
            time.sleep(1000)
"""
TRACE = """
import time
class Task:
    name = "shop.send_mail"
def build_tracer(task):
    def trace_task(uuid, args, kwargs, request=None):
        print("ready", flush=True)
        time.sleep(1000)
        return task
    return trace_task
build_tracer(Task())("5f0c", (7, "x"), {})
"""


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_workers_of_gunicorn(target, newest, tmp_path):
    """Names of workers in gunicorn; the real one was tried by hand."""
    put(tmp_path, "gunicorn/__init__.py", "")
    put(tmp_path, "gunicorn/workers/__init__.py", "")
    put(tmp_path, "gunicorn/workers/sync.py", SYNC)
    master = target(put(tmp_path, "master.py", ARBITER))
    out = shown_once("gunicorn_workers", master, r"(?s)(in SyncWorker.run .*){2}").splitlines()
    for number, line in enumerate(out, 1):
        assert re.match(r"worker %d, pid %s, \d+ s old, %d requests, in SyncWorker.run " % (
            number, master.ready[number - 1], 40 + number), line), out


def test_tasks_of_celery(target, newest, tmp_path):
    put(tmp_path, "celery/app/__init__.py", "")
    put(tmp_path, "celery/__init__.py", "")
    put(tmp_path, "celery/app/trace.py", TRACE)
    worker = target(put(tmp_path, "worker.py", "import celery.app.trace\n"))
    out = shown_once("celery_tasks", worker, "sleep")
    assert re.match(r"%d \S+ runs shop.send_mail 5f0c \(7, 'x'\), in \S*trace_task trace.py:"
                    % worker.pid, out), out


@pytest.fixture
def loads():
    training.check()
    with support.Program([training.PYTHON, PROGRAMS / "training/loads.py"],
                         start_new_session=True) as program:
        try:
            assert program.line(timeout=60) == "loaded"
            yield program
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


def test_loaders_and_modules_of_torch(loads):
    out = shown_once("loaders", loads, r"(?s)(worker \d, pid \d+ in __getitem__ .*){2}")
    # Two batches for each worker were requested, and one more when the first was taken.
    assert re.match("loader of Numbers: 5 batches asked for, 1 received, 4 not yet taken\n"
                    "  results of workers: none wait\n"
                    "(  worker [01], pid .*, more work waits\n){2}$", out), out
    assert [line.rpartition(": ")[::2] for line in shown("modules", loads).splitlines()] == [
        ("model Net", "300 parameters, 1.2 KiB"), ("  first Linear", "220 parameters, 0.9 KiB"),
        ("  inner Sequential", "80 parameters, 0.3 KiB"),
        ("    0 Linear", "80 parameters, 0.3 KiB"), ("    1 ReLU", "0 parameters, 0.0 KiB")]
    assert len(shown("modules", loads, "0").splitlines()) == 1


def test_the_reference_is_up_to_date():
    library = Path(support.BINARY).with_name("libprobing.so")
    done = subprocess.run([sys.executable, ROOT / "tests/tools/gen-script-api", "--check"], check=False,
                          stderr=subprocess.PIPE, env={**os.environ, "PROBING_LIBRARY": str(library)})
    assert done.returncode == 0, done


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)


def test_the_tutorial(target, newest, tmp_path, monkeypatch):
    """Its steps, each after the ones before, on its program."""
    process = target("walked.py")
    shown_once(tmp_path / "wait.py", process, "RLock", text="print(p.thread('wanter').waits_for)")
    steps = python_blocks("docs/script-tutorial.md")
    code = "\n".join(re.sub(r"attach\(\d+\)", "attach(%d)" % process.pid, step) for step in steps)
    (tmp_path / "tutorial.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    out = shown(tmp_path / "tutorial.py", process)
    for wanted in re.findall(r"```text\n(.*?)```", (ROOT / "docs/script-tutorial.md").read_text(
            encoding="utf-8"), re.S):
        for line in wanted.splitlines():
            pattern = re.escape(line.strip()).replace("4242", r"\d+").replace(r"\.\.\.", ".*")
            assert re.search(pattern, out), (line, out)


def test_the_howto_as_written(target, newest, tmp_path):
    """Each file that it shows, put where it says; then its commands."""
    process = target("walked.py")
    shown_once(tmp_path / "wait.py", process, "RLock", text="print(p.thread('wanter').waits_for)")
    page = (ROOT / "docs/howto/add-script.md").read_text(encoding="utf-8")
    folder = tmp_path / "probing"
    folder.mkdir()
    for name, text in re.findall(r"`~/\.config/probing/(\w+\.py)`.*?```python\n(.*?)```", page, re.S):
        (folder / name).write_text(text)
    for name, text in re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", page, re.S):
        (tmp_path / name).write_text(text)
    commands = re.findall(r"^\$ probing (.*)$", page, re.M)
    assert len(commands) >= 3
    for command in commands:
        words = [str(process.pid) if word == "4242" else word for word in shlex.split(command)]
        result = run(*words, env={"XDG_CONFIG_HOME": str(tmp_path)}, cwd=tmp_path)
        wanted = page.split("$ probing %s\n" % command)[1].splitlines()[0]
        assert result.code == 0 and result.err == "", result
        pattern = re.escape(wanted).replace("4242", r"\d+").replace(r"\.\.\.", ".*")
        assert re.search(pattern, result.out), (wanted, result)


def test_what_the_page_shows_runs(target, newest, tmp_path):
    """The first block of Python of docs/scripting.md, with the pid of a suitable program."""
    process = target("walked.py")
    block = re.search(r"```python\n(import probing.*?)```", (ROOT / "docs/scripting.md").read_text(), re.S)
    code = re.sub(r"attach\(\d+\)", "attach(%d)" % process.pid, block.group(1))
    assert str(process.pid) in code
    shown_once(tmp_path / "wait.py", process, "RLock", text="print(p.thread('wanter').waits_for)")
    (tmp_path / "page.py").write_text(code)
    out = shown(tmp_path / "page.py", process)
    assert re.search(r"^wanter .*RLock.* held by %d" % process.pid, out, re.M), out
    assert re.search(r"^Trainer.run \d+ 12$", out, re.M), out


STEPS = """
import sys, threading, time
class State(object):
    def __init__(self):
        self.step, self.rows = 0, [1]
def still():
    time.sleep(1000)
def run(state):
    for line in iter(sys.stdin.readline, ""):
        state.step += 1
        state.rows.append(state.step)
        if line == "go\\n":
            threading.Thread(target=still, daemon=True, name="started").start()
        print("ready", flush=True)
threading.Thread(target=still, daemon=True, name="still").start()
print("ready", flush=True)
run(State())
"""


LOOP = """
import asyncio, sys, time
def run(what):
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(what)
def load():
    time.sleep(0.4)
async def slow():
    while True:
        load()
        await asyncio.sleep(0.01)
async def quick():
    while True:
        time.sleep(0.001)
        await asyncio.sleep(0)
async def idle():
    print("ready", flush=True)
    await asyncio.sleep(3600)
async def blocked():
    await asyncio.gather(slow(), quick(), idle())
run({"blocked": blocked, "idle": idle}[sys.argv[1]]())
"""


def test_what_blocks_an_event_loop(interpreter, tmp_path):
    program = tmp_path / "loop.py"
    program.write_text(LOOP)
    with support.Target(interpreter, program, "blocked") as process:
        assert process.line() == "ready"
        out = shown("event_loop", process, 3)
        assert not run("snapshot", process.pid, "-o", tmp_path / "a.snapshot").code
        os.kill(process.pid, signal.SIGSTOP)
        for still in (process.pid, tmp_path / "a.snapshot"):
            assert run("script", "event_loop", still, 0.3).out.startswith("No event loop of asyncio goes on"), still
    assert re.match(r"Event loop of %d MainThread: of \d+ looks, [1-9]\d* found it running callbacks" % process.pid, out), out
    assert re.search(r"not looked for events for 100 ms or more: at \d+ looks", out), out
    first = re.search(r"blocked (\d+) ms or more in (.*)", out)
    assert first and 100 <= int(first.group(1)) < 3000 and first.group(2).startswith("load %s:" % program), out
    with support.Target(interpreter, program, "idle") as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "epoll_wait")
        out = shown("event_loop", process, 0.5)
    assert re.fullmatch(r".*: of (\d+) looks, 0 found it running callbacks, \1 waiting for events, 0 could not tell\.\n", out), out


def test_changes_since_a_snapshot(newest, tmp_path):
    program, earlier, later = tmp_path / "steps.py", tmp_path / "a.snapshot", tmp_path / "b.snapshot"
    program.write_text(STEPS)
    with support.Target(newest, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        assert not run("snapshot", process.pid, "-o", earlier).code
        process.send(b"go\n")
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read", process.pid)
        assert not run("snapshot", process.pid, "-o", later).code
        live = shown("changes", process, earlier)
    for words in (("script", "changes", later, earlier), ("diff", earlier, later)):
        found = run(*words)
        assert (found.code, found.out) == (0, live), found
    assert re.search(r"^  state of run, State at 0x\w+ both times\n    - <__main__\.State step=0 rows=\[1\]>\n"
                     r"    \+ <__main__\.State step=1 rows=\[1, 1\]>\n", live, re.M), live
    assert re.search(r"^\d+ started is new, in still, line 7$", live, re.M) and " still is " not in live
    assert live.endswith("2 of 3 threads changed.\n"), live
    assert run("script", "changes", earlier, earlier).out == "0 of 2 threads changed.\n"


REUSED = """
import os, sys, threading, time
def wait(given):
    time.sleep(1000)
def run(long, text, given):
    threading.Thread(target=wait, args=(given,), daemon=True, name="waits").start()
    number, row = 1.5, [0]
    at = id(row)
    print("ready", flush=True)
    sys.stdin.readline()
    row = None
    row = [7]
    assert id(row) == at
    number += 1
    long[500] = -1
    given.append(2)
    print("ready", flush=True)
    sys.stdin.readline()
    os.execv(sys.executable, [sys.executable, "-c", "print('ready', flush=True); input()"])
run(list(range(1000)), "x" * 5000, [1])
"""


def test_an_address_is_no_proof_of_the_same_object(newest, tmp_path):
    program, earlier, later = tmp_path / "reused.py", tmp_path / "a.snapshot", tmp_path / "b.snapshot"
    program.write_text(REUSED)
    with support.Target(newest, program) as process:
        assert process.line() == "ready"
        support.wait_for_rest(process.pid)
        assert not run("snapshot", process.pid, "-o", earlier).code
        process.send(b"\n")
        assert process.line() == "ready"
        support.wait_for_rest(process.pid)
        assert not run("snapshot", process.pid, "-o", later).code
        process.send(b"\n")
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        other = run("diff", earlier, process.pid)
    assert other.code == 1 and other.err.endswith("is of another process, which has its modules elsewhere in memory\n"), other
    swapped = run("diff", later, earlier)
    assert (swapped.code, swapped.err) == (1, "%s is the later one: name it second\n" % later), swapped
    found = run("diff", earlier, later).out
    assert re.search(r"^\d+ waits did not run, in wait, line 4\n"
                     r"  given of wait, the same object at 0x\w+\n    - \[1\]\n    \+ \[1, 2\]\n", found, re.M), found
    assert re.search(r"^  row of run, list at 0x\w+ both times\n    - \[0\]\n    \+ \[7\]\n", found,
                     re.M), found
    assert "  number of run\n    - 1.5\n    + 2.5\n" in found
    assert re.search(r"^Shown in part, which is the same: long of run, text of run\.$", found, re.M), found


def test_changes_of_what_cannot_be_compared(newest, tmp_path):
    """Without the values of variables, or of another process."""
    program, without, other = tmp_path / "steps.py", tmp_path / "without.snapshot", tmp_path / "other.snapshot"
    program.write_text(STEPS)
    with support.Target(newest, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        assert not run("snapshot", process.pid, "-o", other).code
    with support.Target(newest, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        assert not run("snapshot", process.pid, "--redact", "-o", without).code
        told = run("diff", without, process.pid)
        assert told.out == ("variables were not compared: the snapshot has none (--redact?)\n"
                            "0 of 2 threads changed.\n"), told
        told = run("diff", other, process.pid)
    assert (told.code, told.err) == (1, "%s is of another process, which has another pid\n" % other), told
