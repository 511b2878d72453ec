# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing overview` and /v1/overview: the present activity of each process, and its problems."""
import contextlib
import json
import re
import subprocess
import time

import pytest

import support
from deadlock import deadlocked  # noqa: F401
from gateway_client import Gateway, wait_until
from terminal import Terminal

OK, FAILED = range(2)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
# Waits in one function after the other, each time for a line.
MOVES = """
import os, sys
def first():
    print("here", flush=True)
    os.read(0, 100)
def second():
    print("here", flush=True)
    os.read(0, 100)
first()
second()
os.execv(sys.executable, [sys.executable, "-c", %r, "another"])
""" % "import os\ndef third():\n    print('here', flush=True)\n    os.read(0, 100)\nthird()\n"


def overview(*words):
    done = subprocess.run([support.BINARY, "overview", *map(str, words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextlib.contextmanager
def watching(*words, before=()):
    """The rounds of a watching command, as they come."""
    command = [*before, support.BINARY, "overview", "--json", "--watch=50ms", *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
        try:
            yield map(json.loads, running.stdout)
        finally:
            running.terminate()
            running.stdout.close()


def wrong(target):
    """Problems of its threads: the memory of the machine is not ours."""
    return [text for text in target["troubles"] if "memory" not in text and "swapped" not in text]


def until(looks, condition):
    """The first round about a target that meets the condition; rounds continue as long as the test may."""
    for look in looks:
        [target] = look["targets"]
        if condition(target):
            return target
    raise AssertionError("the looks have ended")


@pytest.fixture(scope="module")
def quiet():
    with support.Program([NEWEST.exe, support.HERE / "programs" / "obeys.py"], env=dict(NEWEST.env, RANK="7")) as program:
        assert program.line() == "ready"
        support.wait_for_sleep(program.pid, "pipe_read", program.pid)
        yield program


def test_one_process(quiet):
    # A reader of all ranks of this machine has a thread stopped for a moment.
    end = time.monotonic() + 60
    target = {"threads": 0}
    while target["threads"] != 1 and time.monotonic() < end:
        code, out, err = overview("--json", quiet.pid)
        assert (code, err) == (OK, "")
        [target] = json.loads(out)["targets"]
    [thread] = support.dump(quiet.pid)["threads"]
    assert (target["id"], target["kind"], target["pid"], target["rank"]) == (support.instance(quiet.pid), "process", quiet.pid, 7)
    assert target["version"].split("+")[0] == NEWEST.full_version.split("+")[0]
    assert (wrong(target), target["unreadable"], target["ended"]) == ([], None, False)
    assert target["threads"] == 1 and target["rss"] > 1 << 20 and target["cpu_seconds"] > 0
    main, frame = target["main"], thread["frames"][0]
    assert (main["tid"], main["state"], main["waits_for"]) == (quiet.pid, "idle", thread["waits_for"])
    assert (main["func"], main["line"], main["file"]) == (frame["func"], frame["line"], frame["file"])
    assert "obeys.py" in " ".join(target["argv"])
    code, out, err = overview(quiet.pid)
    assert (code, err) == (OK, "")
    assert "\n%7d     7        1 " % quiet.pid in out
    assert "line obeys.py:%d, idle" % main["line"] in out.splitlines()[-1]


def test_what_is_wrong_comes_first(quiet, deadlocked):
    code, out, err = overview(quiet.pid, deadlocked.pid)
    assert (code, err) == (OK, "")
    assert "! deadlock of 2 threads" in out
    if "memory" not in out:  # that of the machine is nothing of ours
        assert out.index("\n%7d " % deadlocked.pid) < out.index("\n%7d " % quiet.pid), out


def about_threads(findings):
    """Findings about other things than the memory of the machine, which is not ours."""
    return [finding for finding in findings if finding["rule"] not in ("memory_limit", "oom_killed", "swapped")]


def test_findings_are_those_of_why(quiet, deadlocked):
    look = json.loads(overview("--json", quiet.pid, deadlocked.pid)[1])
    assert look["judged"] == 2
    [finding] = about_threads(look["findings"])
    done = subprocess.run([support.BINARY, "why", "--json", str(deadlocked.pid)], stdout=subprocess.PIPE, check=False)
    [judged] = json.loads(done.stdout)["targets"]
    [wanted] = about_threads(judged["findings"])
    assert finding.pop("id") == support.instance(deadlocked.pid)
    assert finding["code"] == done.returncode == 10 and finding["pid"] == deadlocked.pid
    for times in (finding, wanted):
        del times["evidence"]  # says how long
    assert finding == wanted


def test_findings_begin_the_text(quiet, deadlocked):
    out = overview(quiet.pid, deadlocked.pid)[1]
    first, _, table = out.partition("\n\n")
    assert "%d  deadlock: threads " % deadlocked.pid in first and table.startswith("    PID "), out
    if not about_threads(json.loads(overview("--json", quiet.pid)[1])["findings"]):
        assert "nothing is wrong with 1 process" in first or "memory" in first, out


def test_probing_alone_on_a_terminal(quiet):
    with Terminal(size=(1000, 400)) as terminal:
        out, status = terminal.end()
    assert status == OK, out
    assert "    PID  RANK  THREADS " in out and "\n%7d     7 " % quiet.pid in out
    # A pipe gets the usage.
    done = subprocess.run([support.BINARY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, b"") and b"probing help COMMAND" in done.stderr


def test_what_may_not_be_read_is_not_judged():
    with support.Program(["sleep", "600"]) as other:
        look = json.loads(overview("--json", other.pid)[1])
        [finding] = about_threads(look["findings"])
        assert (finding["rule"], finding["code"], finding["confidence"]) == ("unknown", 20, "low")
        assert "its threads cannot be read: " in finding["sentence"]


def test_all_processes(quiet, deadlocked):
    found = {target["pid"]: target for target in json.loads(overview("--json")[1])["targets"]}
    assert wrong(found[quiet.pid]) == [] and wrong(found[deadlocked.pid]) == ["deadlock of 2 threads"]
    assert found[quiet.pid]["main"]["func"] == "line"


def test_the_list_comes_before_the_verdicts(deadlocked):
    with watching(deadlocked.pid) as looks:
        first, second = next(looks), next(looks)
    [target] = first["targets"]
    assert first["pending"] and (first["judged"], first["findings"], target["main"]) == (0, [], None)
    assert target["pid"] == deadlocked.pid and target["argv"] and target["rss"] > 1 << 20 and not target["unreadable"]
    assert not second["pending"] and second["judged"] == 1 and second["findings"]
    with Gateway(deadlocked.pid) as gateway:
        look = gateway.ask("/v1/overview").json  # which waits
        assert not look["pending"] and look["findings"]
        assert not gateway.ask("/v1/overview?early=1").json["pending"]


def test_processes_that_do_not_run_cost_little(tmp_path):
    """All are read and judged at first; later the clock of each shows that it did not run,
    and one file of it is opened in some passes."""
    few, many = 4, 12
    trace, opened = tmp_path / "trace", {}
    for count in few, many:
        with contextlib.ExitStack() as stack:
            sleepers = [stack.enter_context(support.Program([NEWEST.exe, "-c", "print('ready', flush=True); input()"])) for _ in range(count)]
            for sleeper in sleepers:
                assert sleeper.line() == "ready"
                support.wait_for_sleep(sleeper.pid, "pipe_read", sleeper.pid)
            with watching(*(sleeper.pid for sleeper in sleepers), before=("strace", "-qq", "-o", trace, "-e", "trace=openat,write")) as looks:
                for _ in range(30):
                    next(looks)
        # What is opened between two lines of output.
        rounds = [text.count("openat(") for text in trace.read_text().split("write(1, ")]
        opened[count] = sum(rounds[-17:-1]) / 16, max(rounds)
    each = (opened[many][0] - opened[few][0]) / (many - few)
    first = (opened[many][1] - opened[few][1]) / (many - few)
    assert each <= 0.5 < 10 < first, opened


def test_a_process_that_moves_is_read_again():
    with support.Program([NEWEST.exe, "-c", MOVES, "one"]) as program, watching(program.pid) as looks:
        for name in ("first", "second", "third"):
            assert program.line() == "here"
            seen = until(looks, lambda target: target["main"] and target["main"]["func"] == name
                         and target["main"]["state"] == "idle" and target["main"]["idle_seconds"])
            assert seen["argv"][-1] == ("another" if name == "third" else "one")
            # It is not read again, and its time continues.
            before = seen["main"]["idle_seconds"]
            until(looks, lambda target: target["main"]["idle_seconds"] > before)
            program.send(b"go\n")
        ended = until(looks, lambda target: target["ended"])
        assert ended["troubles"] == ["has ended: exited with status 0"]


def test_what_cannot_be_read_says_why():
    with support.Program(["sleep", "600"]) as other:
        code, out, _ = overview("--json", other.pid)
        [target] = json.loads(out)["targets"]
        assert code == OK and target["main"] is None and "not a Python process" in target["unreadable"], target
        assert target["argv"] == ["sleep", "600"]
        assert wrong(target) == ["cannot be read"]
        assert "! cannot be read: " in overview(other.pid)[1]


def test_a_file(quiet, tmp_path):
    file = tmp_path / "one.snapshot"
    subprocess.run([support.BINARY, str(quiet.pid), "snapshot", "-o", file], check=True, stderr=subprocess.DEVNULL)
    [target] = json.loads(overview("--json", file)[1])["targets"]
    assert (target["id"], target["kind"], target["file"]) == ("f1", "file", str(file))
    assert target["main"]["func"] == "line" and target["threads"] is None
    assert str(file) in overview(file)[1]


def test_over_http(quiet, deadlocked):
    with Gateway(quiet.pid, deadlocked.pid) as gateway:
        look = gateway.ask("/v1/overview").json
        assert [target["id"] for target in look["targets"]] == [support.instance(quiet.pid), support.instance(deadlocked.pid)]
        assert wrong(look["targets"][1]) == ["deadlock of 2 threads"]
        # One command serves all clients, and repeats by itself.
        [command] = gateway.children()
        wait_until(lambda: gateway.ask("/v1/overview").json["time"] > look["time"], "no second look comes")
        assert gateway.children() == [command]


def test_targets_that_end(quiet):
    with support.Program([NEWEST.exe, support.HERE / "programs" / "obeys.py"]) as program:
        program.line()
        with Gateway(program.pid) as alone, Gateway(quiet.pid, program.pid) as both:
            assert [gateway.ask("/v1/overview").status for gateway in (alone, both)] == [200, 200]
            program.kill()
            for gateway in (alone, both):
                wait_until(lambda: gateway.ask("/v1/overview").json["targets"][-1]["ended"], "it does not end")
        with Gateway(quiet.pid) as gateway:
            assert len(gateway.ask("/v1/overview").json["targets"]) == 1


def test_it_is_made_only_while_somebody_asks(quiet):
    with Gateway(quiet.pid) as gateway:
        assert gateway.ask("/v1/overview").status == 200 and gateway.children()
        if support.LONG:  # a quarter of a minute
            wait_until(lambda: not gateway.children(), "the command goes on")
        assert gateway.ask("/v1/overview").status == 200


def test_it_ends_with_the_gateway(quiet):
    with Gateway(quiet.pid) as gateway:
        assert gateway.ask("/v1/overview").status == 200
        [command] = gateway.children()
        assert gateway.stop() == (0, "")
        wait_until(lambda: not support.Path("/proc/%d" % command).exists(), "the command goes on")


GROWS = """
import time
print("ready", flush=True)
kept = []
while True:
    %s
    time.sleep(0.02)
"""


@pytest.mark.parametrize("how, grows", [("kept.append(bytearray(400000))", True), ("bytearray(400000)", False)])
def test_memory_that_grows(how, grows, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "leak=50,leak_for=2")
    with support.Program([NEWEST.exe, "-c", GROWS % how]) as program:
        assert program.line() == "ready"
        with watching(program.pid) as looks:
            for number, look in enumerate(looks):
                told = [finding for finding in look["findings"] if finding["rule"] == "leak"]
                if told or number > 100:
                    break
        assert bool(told) == grows, told
        if grows:
            [finding] = told
            assert (finding["confidence"], finding["kind"]) == ("low", "leak") and finding["sentence"].startswith("its memory grows all the time: by ")
            assert finding["next"] == "probing -t %d memory --growth 10s" % program.pid


HOLDERS = {
    "a list": ("registry.sessions.append(bytearray(400000))", "registry.sessions"),
    "lists of others": ("users[len(noise) % 5].history.append(bytearray(400000))", "users[…].history"),
    "C code": ("libc.memset(libc.malloc(400000), 1, 400000)", None),
}


@pytest.mark.parametrize("kind", sorted(HOLDERS))
def test_what_holds_the_memory_that_grows(kind, monkeypatch):
    """What is new is in one place, and another list grows by little: that is not blamed."""
    monkeypatch.setenv("PROBING_LIMITS", "leak=30,leak_for=8")
    how, holder = HOLDERS[kind]
    source = """
import ctypes
libc, noise = ctypes.CDLL(None), []
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
class Holds:
    pass
registry, users = Holds(), [Holds() for _ in range(5)]
registry.sessions = []
for user in users:
    user.history = []
""" + GROWS % ("noise.append(str(len(noise)))\n    " + how)
    with support.Program([NEWEST.exe, "-c", source]) as program:
        assert program.line() == "ready"
        with watching(program.pid) as looks:
            for look in looks:
                told = [finding for finding in look["findings"] if finding["rule"] == "leak"]
                if told and len(told[0]["evidence"]) > 1:
                    break
        [finding] = told
        text = finding["evidence"][1]["text"]
        assert "Python's objects grew by " in text and ("noise" in text) is False, finding
        if holder:
            assert finding["sentence"].endswith(", held by `__main__.%s`" % holder) and "what `__main__.%s` holds, by " % holder in text, finding
        else:
            assert "held by" not in finding["sentence"] and "holds" not in text, finding


HOLDS_GIL = """
import threading, time
def spin(number):
    for each in range(number):
        each %% 7
def wanting():
    while True:
        time.sleep(%s)
threading.Thread(target=wanting, daemon=True).start()
print("ready", flush=True)
while True:
    %s
"""


def held(source, until, monkeypatch):
    """What is said of the GIL, in looks of a second or more, or after @until looks."""
    monkeypatch.setenv("PROBING_LIMITS", "gil_held=60,gil_for=1")
    with support.Program([NEWEST.exe, "-c", source]) as program:
        assert program.line() == "ready"
        with watching(program.pid) as looks:
            for number, look in enumerate(looks):
                told = [finding for finding in look["findings"] if finding["rule"] == "gil_held"]
                if told or number > until:
                    return told, program.pid
    raise AssertionError("the looks have ended")


def test_a_function_that_holds_the_gil(monkeypatch):
    [[finding], pid] = held(HOLDS_GIL % ("0.0001", "spin(10 ** 7)"), 10 ** 6, monkeypatch)
    assert (finding["kind"], finding["code"], finding["confidence"] in ("medium", "low")) == ("gil", 14, True), finding
    assert re.match(r"the GIL is held \d+ % of the time by `spin` <string>, and others wait for it$", finding["sentence"]), finding
    assert re.match(r"\d+ looks in [\d.]+ s: in \d+ the function, or one that it called, held the GIL", finding["rests_on"]), finding
    assert finding["next"] == "probing -t %d perf --mode gil" % pid and finding["tids"][0] == pid, finding


@pytest.mark.parametrize("pause, work", [("100", "spin(10 ** 7)"), ("0.0001", "time.sleep(0.01)")])
def test_a_gil_that_nobody_else_wants(pause, work, monkeypatch):
    assert held(HOLDS_GIL % (pause, work), 60, monkeypatch)[0] == []


TASKS = """
import asyncio
async def take(one, other):
    async with one:
        await asyncio.sleep(0.01)
        async with other:
            pass
async def main():
    locks = asyncio.Lock(), asyncio.Lock()
    takers = [asyncio.create_task(take(*locks)), asyncio.create_task(take(*locks[::-1]))]
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    while True:
        await asyncio.sleep(0.01)
asyncio.run(main())
"""


def test_tasks_that_wait_for_each_other():
    """The loop goes on, so it takes two readings; a look that comes later says the same."""
    with support.Program([NEWEST.exe, "-c", TASKS]) as program:
        assert program.line() == "ready"
        [once] = about_threads(json.loads(overview("--json", program.pid)[1])["findings"])
        assert once["rule"] == "tasks" and "2 tasks wait for each other" in once["sentence"], once
        with watching(program.pid) as looks:
            until(looks, lambda target: "deadlock of 2 tasks" in target["troubles"])
            for _ in range(5):
                assert "deadlock of 2 tasks" in next(looks)["targets"][0]["troubles"]


WAITS = """
import socket, time
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
client = socket.create_connection(server.getsockname())
print("ready", flush=True)
client.recv(1)
"""


def test_loading_the_agent_begins_no_wait_anew():
    """Whoever has watched knows how long it waits; others say that they do not know."""
    with support.Program([NEWEST.exe, "-c", WAITS]) as program:
        assert program.line() == "ready"
        with watching(program.pid) as looks:
            before = until(looks, lambda target: target["main"] and (target["main"]["idle_seconds"] or 0) > 11)
            done = subprocess.run([support.BINARY, str(program.pid), "eval", "1 + 1"], stdout=subprocess.PIPE, check=True)
            assert done.stdout == b"2\n"
            assert (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) < 9
            after = until(looks, lambda target: target["threads"] > before["threads"])
            for _ in range(20):
                assert next(looks)["targets"][0]["main"]["idle_seconds"] > 11, after
        text = overview(program.pid)[1]
        assert "nothing is wrong" not in text and "how long it had waited: %d\n" % program.pid in text, text
        why = subprocess.run([support.BINARY, "why", str(program.pid)], stdout=subprocess.PIPE, text=True, check=False).stdout
        assert "nothing is wrong since probing's agent was loaded, " in why, why
