# SPDX-License-Identifier: GPL-3.0-or-later
"""trace --calls --slower: slow calls alone, and how long all took."""
import json
import os
import re
import shlex
import signal

import pytest

import profiles
import support
from environment import FAILED, OK, USAGE, child_of, needs
from screen import Screen
from test_logpoints import Tracing, watched

REST = 0.5  # of a slow call
LEAST = "400ms"  # a fast one takes microseconds


@pytest.fixture
def slow(target, tmp_path):
    def start(interpreter):
        return target("slow_calls.py", REST, interpreter=interpreter, env={"PROBING_DATA_DIR": str(tmp_path)})

    return start


def kept(process, name, count, *options):
    """(rows, what was said) of so many slow calls."""
    tracing = Tracing(process.pid, "--calls", name, "--slower", LEAST, "--json", *options)
    rows = [json.loads(tracing.line()) for _ in range(count)]
    code, _, errors = tracing.end()
    assert code == OK, errors
    assert all(REST * 1000 <= row["duration"] for row in rows), rows
    return rows, errors


def milliseconds(text, name):
    value, unit = re.search(r"%s ([\d.]+) (ns|us|ms|s)\b" % name, text).groups()
    return float(value) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[unit]


def test_slow_calls_alone(slow, probing, interpreter):
    process = slow(interpreter)
    rows, told = kept(process, "handle", 2)
    assert [row["arguments"]["slow"] for row in rows] == ["True"] * 2, rows
    numbers = [int(row["result"]) for row in rows]
    assert numbers[0] % 10 == 0 and numbers[1] == numbers[0] + 10, rows
    # The text of an argument calls the function itself, and that is no call of the program.
    assert [row["arguments"]["request"] for row in rows] == ["Request(%d)" % each for each in numbers]
    assert int(re.search(r"(\d+) calls: p50", told)[1]) >= 11, told
    assert milliseconds(told, "p50") < REST * 1000 <= milliseconds(told, "p99"), told
    assert milliseconds(told, "longest") >= REST * 1000, told
    assert len(re.findall(r"^ +below .* #+$", told, re.M)) >= 2, told
    assert "no logpoints" in watched(probing, process) and process.alive()


def test_in_the_ring(slow, probing, newest):
    process = slow(newest)
    kept(process, "handle", 1)
    rows = json.loads(probing(process.pid, "query", "SELECT record, name, duration, attributes FROM "
                              "python.trace_event", "-f", "json").out)
    assert rows and {(row["record"], row["name"]) for row in rows} == {("span_end", "handle")}, rows
    assert all(row["duration"] >= REST * 1000 for row in rows)
    assert json.loads(rows[0]["attributes"])["arguments"]["slow"] == "True"


def test_calls_that_raise_generators_and_recursion(slow, newest):
    process = slow(newest)
    assert kept(process, "fail", 1)[0][0]["error"] == "KeyError"
    # A generator's time is that from its first value to its end, what its user does included.
    assert int(kept(process, "numbers", 1)[0][0]["arguments"]["number"]) % 10 == 0
    depths = [row["arguments"]["depth"] for row in kept(process, "recurse", 3)[0]]
    assert depths == ["0", "1", "2"], depths


def test_a_coroutine_takes_the_time_of_its_task(slow, newest):
    """Of ten that wait in turns on one thread, one is slow."""
    process = slow(newest)
    rows, told = kept(process, "serve", 2)
    assert all(int(row["arguments"]["number"]) % 10 == 0 for row in rows), rows
    assert int(re.search(r"(\d+) calls", told)[1]) >= 11 and milliseconds(told, "p50") < REST * 1000, told


def test_functions_by_a_pattern(slow, newest):
    process = slow(newest)
    rows, told = kept(process, "Handler.do_*", 1)
    assert rows[0]["function_name"].endswith("do_get") and "do_put" in told, (rows, told)


def test_a_condition_is_asked_of_slow_calls(slow, newest):
    process = slow(newest)
    rows, _ = kept(process, "handle", 2, "if", "request.number % 20 == 0")
    assert [int(row["result"]) % 20 for row in rows] == [0, 0], rows


def test_two_at_once_on_one_function(slow, probing, newest):
    """Each gets all calls that it wants, also when the other ends."""
    process = slow(newest)
    all_calls = Tracing(process.pid, "--calls", "handle", "--json")
    all_calls.line()
    rows, told = kept(process, "handle", 1)
    assert int(re.search(r"(\d+) calls", told)[1]) >= 1 and rows[0]["arguments"]["slow"] == "True"
    code, out, errors = all_calls.end()
    numbers = [int(json.loads(line)["result"]) for line in out.splitlines()]
    assert code == OK and len(numbers) > 1, errors
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), numbers
    kept(process, "handle", 1)
    assert "no logpoints" in watched(probing, process) and process.alive()


def test_slower_is_for_calls(slow, probing, newest):
    process = slow(newest)
    done = probing(process.pid, "trace", "slow_calls.py:20", "number", "--slower", "1s")
    assert done.code == USAGE and "--slower is for calls" in done.err, done


def commands_of(page, title):
    """[words] of the commands of a section."""
    section = re.search(r"^## %s\n(.*?)^## " % re.escape(title), (support.ROOT / "docs" / page).read_text(),
                        re.M | re.S)[1]
    return [shlex.split(command.replace("\n> ", "\n"))[2:]
            for command in re.findall(r"^\$ (probing 4242 .*(?:\n> .*)*)", section, re.M)]


def test_the_page_about_p99(target, probing, newest, tmp_path):
    """Its commands, as they are, on a service."""
    process = target("serve.py", interpreter=newest, env={"PROBING_DATA_DIR": str(tmp_path)})
    record, trace, query = commands_of("cookbook.md", "The p99 latency of a service")
    assert probing(process.pid, *record).code == OK
    try:
        traced = probing(process.pid, *trace)
    finally:
        assert probing(process.pid, "perf", "--stop").code == OK
    assert traced.code == OK and "serve.py:" in traced.err, traced
    assert re.search(r"^within the call of .*\n +\d+ %  \S+ ms  handle \(serve.py:12\) > Event.wait", traced.out, re.M)
    slow = re.findall(r"^[\d:.]+  handle\(number=(\d+)\) -> \1  ([\d.]+) ms$", traced.out, re.M)
    assert slow and all(int(number) % 50 == 0 and float(took) >= 500 for number, took in slow), traced
    assert milliseconds(traced.err, "p50") < 200 < milliseconds(traced.err, "longest"), traced
    found = probing(process.pid, *query)
    assert found.code == OK and '"arguments": {"number": "' in found.out, found


def test_the_slowest_beside_the_others(target, probing, newest, tmp_path):
    """What the slowest calls do that the others do not, by the samples of a recorder."""
    process = target("serve.py", interpreter=newest, env={"PROBING_DATA_DIR": str(tmp_path)})
    assert probing(process.pid, "perf", "--background").code == OK
    try:
        assert probing(process.pid, "perf", "--last", "60s", "--slowest", "1% of handle").code == FAILED
        done = probing(process.pid, "trace", "--calls", "handle", "--for", "12s", "--json")
        calls = [json.loads(line) for line in done.out.splitlines()]
        page = tmp_path / "slowest.html"
        words = "--last", "60s", "--slowest", "1% of handle", "--mode", "wall"
        text = probing(process.pid, "perf", *words)
        result = json.loads(probing(process.pid, "perf", *words, "--json").out)
        drawn = probing(process.pid, "flamegraph", *words, "-o", page)
    finally:
        assert probing(process.pid, "perf", "--stop").code == OK
    said = re.match(r"before: the other (\d+) of (\d+) recorded calls of handle; after: the slowest (\d+), of "
                    r"[\d.e+]+ ms or more\n", text.out)
    assert said, text
    others, recorded, slowest = map(int, said.groups())
    assert 100 < recorded <= len(calls) and slowest == -(-recorded // 100) == recorded - others, (text, len(calls))
    rows = {row["func"]: row for row in result["functions"]}
    wait = next(row for name, row in rows.items() if name.endswith("wait"))
    assert wait["total"]["after"] > 0.9, rows
    assert drawn.code == OK and page.stat().st_size > 10000, drawn


@pytest.mark.parametrize("words, says", [
    (["--slowest", "1% of handle"], "--slowest is not for"),
    (["--last", "9s", "--slowest", "handle"], "'1% of handle'"),
    (["--last", "9s", "--slowest", "100% of handle"], "'1% of handle'")])
def test_the_slowest_refuses(slow, probing, newest, words, says):
    process = slow(newest)
    done = probing(process.pid, "perf", *words)
    assert done.code == USAGE and says in done.err, done


@pytest.fixture
def recorded(probing):
    """Has a process recorded in the background while a test runs."""
    begun = []

    def begin(process):
        assert probing(process.pid, "perf", "--background").code == OK
        begun.append(process.pid)

    yield begin
    for pid in begun:
        assert probing(pid, "perf", "--stop").code == OK


def test_stacks_within_slow_calls(target, probing, recorded, newest, tmp_path):
    """By the samples of the recorder, each call with its own."""
    process = target("serve.py", interpreter=newest, env={"PROBING_DATA_DIR": str(tmp_path)})
    recorded(process)
    words = "trace", "--calls", "handle", "--slower", "400ms", "--for", "4s"
    text = probing(process.pid, *words)
    assert text.code == OK and "no stacks" not in text.err, text
    calls = re.findall(r"^\S+  handle\(number", text.out, re.M)
    within = re.findall(r"^within the call of [\d:.]+, [\d.]+ m?s, by \d+ samples?:\n((?:  .*\n)+)", text.out, re.M)
    assert len(calls) == len(within) > 1, text
    for stacks in within:
        share, stack = re.match(r" +(\d+) % +\S+ m?s  (.*)", stacks).groups()
        assert int(share) > 80 and stack.startswith("handle (serve.py:12) > Event.wait (threading.py:"), text
    # A name with its module, a pattern: no span has either.
    words = "trace", "--calls", "__main__.hand*", "--slower", "400ms", "--for", "4s"
    rows = [json.loads(line) for line in probing(process.pid, *words, "--json").out.splitlines()]
    stacks = [row for row in rows if "stacks" in row]
    calls = {row["span_id"]: row for row in rows if "stacks" not in row}
    assert sorted(calls) == sorted(row["span_id"] for row in stacks) and len(stacks) > 1, rows
    for row in stacks:
        frames = row["stacks"][0]["frames"]
        assert frames[0]["func"] == "handle" and frames[0]["lineno"] == 12 and frames[1]["func"].endswith("wait"), row
        call = calls[row["span_id"]]
        assert row["function_name"] == call["function_name"] and abs(row["duration"] - call["duration"]) < 1, (row, call)
        assert row["stacks"][0]["duration"] > 0.8 * row["duration"] and row["samples"] > 1, row


def test_only_the_calls_of_this_trace_have_stacks(target, probing, recorded, newest, tmp_path):
    """Not those that another trace of the function records."""
    process = target("serve.py", interpreter=newest, env={"PROBING_DATA_DIR": str(tmp_path)})
    recorded(process)
    assert probing(process.pid, "trace", "--calls", "handle", "--keep").code == OK
    done = probing(process.pid, "trace", "--calls", "handle", "--slower", "400ms", "--for", "4s", "--json",
                   "if", "number % 100 == 0")
    rows = [json.loads(line) for line in done.out.splitlines()]
    stacks = [row["span_id"] for row in rows if "stacks" in row]
    assert stacks and sorted(stacks) == sorted(row["span_id"] for row in rows if "stacks" not in row), rows
    assert probing(process.pid, "trace", "clear").code == OK


def test_a_task_that_waits_is_on_no_stack(slow, probing, recorded, newest):
    """What the loop did meanwhile is not said to be the coroutine's."""
    process = slow(newest)
    recorded(process)
    done = probing(process.pid, "trace", "--calls", "serve", "--slower", LEAST, "--for", "8s")
    within = re.search(r"^within the call of .*\n((?:  .*\n)+)", done.out, re.M)
    assert within and re.match(r" +\d+ % +\S+ m?s  not on the thread's stack \(a suspended coroutine or generator\)\n", within[1]), done
    assert "select" not in within[1], done


def test_samples_that_cannot_be_read_are_no_suspension(target, recorded, newest, tmp_path):
    process = target("busy_calls.py", interpreter=newest, env={"PROBING_DATA_DIR": str(tmp_path)})
    recorded(process)
    tracing = Tracing(process.pid, "--calls", "handle", "--slower", LEAST)
    tracing.line()
    with profiles.tracer_of(process.pid):
        for _ in range(3):
            tracing.line()
    code, out, errors = tracing.end()
    assert code == OK and re.search(r"^ +\d+ %  \S+ m?s  <unreadable: another tracer>$", out, re.M), (out, errors)
    assert "suspended" not in out, out


@needs("no pid namespaces here", "unshare", "-p", "-f", "--mount-proc", "true")
def test_a_process_in_a_pid_namespace(probing, newest, tmp_path):
    """Its agent writes other tids than those that the recorder sees."""
    command = ["unshare", "-p", "-f", "--mount-proc", newest.exe, support.HERE / "programs" / "serve.py"]
    with support.Program(command, env=dict(newest.env, PROBING_DATA_DIR=str(tmp_path))) as outer:
        assert outer.line() == "ready"
        pid = child_of(outer.pid)
        try:
            assert probing(pid, "perf", "--background").code == OK
            done = probing(pid, "trace", "--calls", "handle", "--slower", "400ms", "--for", "4s")
        finally:
            stopped = probing(pid, "perf", "--stop")
            os.kill(pid, signal.SIGKILL)
    assert stopped.code == OK and re.search(r"^ +\d+ %  \S+ m?s  handle \(serve.py:12\) > ", done.out, re.M), done


def test_without_a_recorder_there_are_no_stacks(slow, newest):
    told = kept(slow(newest), "handle", 1)[1]
    assert "no stacks within them" in told and "perf --background" in told, told


def test_the_histogram_is_drawn_live(slow, newest):
    """On a terminal it stays below the rows, and is drawn again as calls end."""
    process = slow(newest)
    screen, seen = Screen(process.pid, "trace", "--calls", "handle", "--slower", LEAST), set()
    while len(seen) < 4:
        assert screen.take(), screen.text()
        said = re.findall(r"^(\d+) calls: p50 ", screen.text(), re.M)
        assert len(said) <= 1, screen.text()
        seen.update(said)
        rows, _, drawn = screen.text().partition(" calls: p50 ")
        assert "handle(" not in drawn, screen.text()
    assert re.search(r"^ +below .* #+$", drawn, re.M) and "handle(request=Request(" in rows, screen.text()
    screen.process.send_signal(signal.SIGINT)
    code, text = screen.ended()
    assert code == OK and len(re.findall(r"^\d+ calls: p50 ", text, re.M)) == 1, text
    assert text.index("recorded ") < text.index("no stacks within them"), text


def test_no_drawing_without_a_terminal(slow, newest):
    assert "\x1b" not in kept(slow(newest), "handle", 2)[1]
