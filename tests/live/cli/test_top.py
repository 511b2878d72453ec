# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing top`: pages for logs, and the display on a terminal."""
import contextlib
import json
import os
import re
import signal
import subprocess
import termios

import pytest

import profiles
import support
from environment import OK
from profiles import PROGRAM
from screen import Screen

USAGE, NO_PROCESS = 2, 6


def a_second(text):
    """More than a second was seen."""
    return re.search(r"last \d+\.?\d* s\b", text)


@pytest.fixture
def busy(target):
    """A process that has one busy thread and some idle ones."""
    process = target(PROGRAM.name, 5)
    process.send(b"go 300\n")
    return process


def rows(text):
    """(self, total, function) of each row of a table of functions."""
    return [(float(own), float(total), name) for own, total, name in re.findall(
        r"^ +(\d+\.\d) %  .{8}  +(\d+\.\d) %  (\S+) ", text, re.M)]


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_batch(probing, target, interpreter):
    process = target(PROGRAM.name, 5, interpreter=interpreter)
    process.send(b"go 300\n")
    result = probing(process.pid, "top", "--batch", "-n", 4, "-i", "500ms")
    assert result.code == OK and not result.err, result
    pages = result.out.strip().split("\n\n")
    assert len(pages) == 4
    best = {}
    for page in pages:
        assert page.startswith("%d  " % process.pid) and "· 6 threads: " in page
        assert re.search(r"last [\d.]+ m?s · cpu · cost: \d+ stops/s of \d+ µs, own CPU", page), page
        found = {name: (own, total) for own, total, name in rows(page)}
        # On a busy machine an interval may have no samples of a thread that hardly ran.
        best = max(best, found, key=lambda each: each.get("burn", (0, 0)))
    assert best["burn"][0] > 50 and best["work"][1] > 90, result


def test_another_tracer(busy, tmp_path):
    """The samples that it takes are reported, by `top` and beside a file for a viewer."""
    file = profiles.Recording(busy.pid, "-d", "300s", "-o", tmp_path / "run.collapsed")
    with subprocess.Popen([support.BINARY, str(busy.pid), "top", "--batch", "-i", "200ms", "--rate", "500"],
                          stdout=subprocess.PIPE, text=True) as top:
        file.samples()
        assert top.stdout.readline()
        with profiles.tracer_of(busy.pid):
            for line in top.stdout:
                if re.search(r" missed · another tracer took (100|[1-9]\d?) % of the samples$", line):
                    break
            else:
                pytest.fail("the page does not say it")
            until = profiles.counted(busy.pid) + 1e9
            while profiles.counted(busy.pid) < until:
                assert top.stdout.readline()
            file.interrupt()
            code, out, err = file.end()
        top.kill()
    assert code == OK and re.search(r"^\d+ % of the samples could not be read: another tracer", out, re.M), (out, err)


def test_background_job_is_interrupted(busy):
    """A script's background jobs ignore SIGINT; 'kill -INT' ends this one as any other command."""
    with subprocess.Popen([support.BINARY, str(busy.pid), "top", "--batch", "-i", "200ms"],
                          stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(
                              signal.SIGINT, signal.SIG_IGN)) as process:
        try:
            assert process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            assert process.returncode == OK
        finally:
            process.kill()


def test_batch_wall_and_lines(probing, busy):
    result = probing(busy.pid, "top", "-b", "-n", 1, "-i", "500ms", "-m", "wall", "--lines")
    assert result.code == OK, result
    own, _, name = rows(result.out)[0]
    assert own > 60 and name in ("Condition.wait", "wait"), result


@pytest.mark.parametrize("words, message", [
    ((), "top needs a terminal"),
    (("-n", 3), "--count is of --batch"),
    (("-b", "-m", "gpu"), "there is no mode 'gpu'"),
    (("-b", "-r", 5), "--rate is from 10"),
])
def test_usage(probing, words, message):
    result = probing(os.getpid(), "top", *words)
    assert result.code == USAGE and message in result.err and not result.out, result


def test_batch_ends_with_the_process(busy):
    screen = Screen(busy.pid, "top", "--batch", "-i", "100ms")
    screen.shows("burn")
    os.kill(busy.pid, signal.SIGKILL)
    code, text = screen.ended()
    assert code == OK and "the process ended" in text


def test_no_such_thread(probing, busy):
    result = probing(busy.pid, "top", "-b", "--tid", os.getpid())
    assert result.code == NO_PROCESS and "has no thread" in result.err, result


def test_views(busy):
    with Screen(busy.pid, "top", "-i", "200ms") as screen:
        page = screen.shows("burn")
        assert "last " in page and "? keys" in page
        screen.send("t")
        page = screen.shows(lambda text: "idle-4" in text and " a lock " in text)
        assert re.search(r"%d +MainThread +\d+\.\d %%" % busy.pid, page), page
        assert len(re.findall(r"^ +\d+  idle-\d .* (?:asleep|a lock) ", page, re.M)) == 5, page
        screen.send("?")
        screen.shows("save what was seen")
        screen.send("xm")
        screen.shows("Condition.wait")
        screen.send("/^burn$\r")
        page = screen.shows(lambda text: "/^burn$/" in text and "Condition" not in text)
        assert [name for _, _, name in rows(page)] == ["burn"]
        screen.send("/(\r")
        screen.shows("missing closing parenthesis")
        screen.send("/\r")
        screen.shows("Condition.wait")
        screen.send("q")
        assert screen.ended()[0] == OK


def test_call_tree(busy):
    with Screen(busy.pid, "top", "-i", "200ms") as screen:
        screen.shows("burn")
        screen.send("c")
        page = screen.shows(lambda text: "   total     self  call" in text and re.search(r"%  +burn ", text))
        found = [(float(total), len(indent), name) for total, indent, name in re.findall(
            r"^ +([\d.]+) % +[\d.]+ %  ( *)(\S+)  profiled", page, re.M)]
        assert [each[1:] for each in found[:3]] == [(0, "<module>"), (1, "main"), (2, "work")], page
        assert {name for _, indent, name in found if indent == 4} == {"burn"}, page
        shares = [total for total, indent, _ in found if indent == 3]
        assert shares == sorted(shares, reverse=True) and sum(shares) > 95, page
        screen.send("/^long$\r")
        page = screen.shows(lambda text: "/^long$/" in text and re.search("%     long  profiled", text))
        assert "short" not in page, page
        screen.send("\t")
        screen.shows("    tid  name")
        screen.send("q")
        assert screen.ended()[0] == OK


def test_one_thread(busy):
    with Screen(busy.pid, "top", "-i", "200ms", "-m", "wall") as screen:
        screen.shows("Condition.wait")
        screen.send("t\x1b[B\r")  # the busy one is the first, so the next one is idle
        page = screen.shows("· thread ")
        assert "Condition.wait" in page and "burn" not in page
        screen.send("a")
        screen.shows("burn")
        screen.send("\x03")
        assert screen.ended()[0] == OK


def test_stack_with_variables(busy):
    with Screen(busy.pid, "top", "-i", "200ms") as screen:
        screen.shows("burn")
        screen.send("tv")
        page = screen.shows("thread %d\n" % busy.pid)
        assert "MainThread" in page
        screen.shows(lambda text: re.search(r"argument seconds += 300.0", text))
        screen.shows("work(float(order[1]))")
        screen.send("t")
        screen.shows("idle-4")
        screen.send("q")
        assert screen.ended()[0] == OK


def test_c_frames(probing, busy):
    """A key switches them; the function of C that burn() calls has a name at once."""
    with Screen(busy.pid, "top", "-i", "200ms") as screen:
        screen.shows("burn")
        screen.send("n")
        screen.shows(lambda text: "· C too" in text and re.search(r"\[.*\]", text))
        screen.send("c")
        screen.shows(lambda text: "main  profiled" in text and "_start" in text)
        screen.send("n")
        screen.shows(lambda text: "C too" not in text and "main  profiled" in text
                     and "[" not in text.split("call\n")[-1])
        screen.send("fn")
        screen.shows(lambda text: "C too" in text and re.search(r"\[.*\]", text))
        screen.send("q")
        assert screen.ended()[0] == OK
    batch = probing(busy.pid, "top", "--batch", "-n", 2, "-i", "300ms", "--cc")
    assert batch.code == OK and "· C too" in batch.out and re.search(r" \[\S+\]", batch.out), batch


def test_pause_and_reset(busy):
    with Screen(busy.pid, "top", "-i", "100ms") as screen:
        screen.shows(a_second)
        screen.send(" ")
        page = screen.shows("PAUSED")
        screen.send("t")
        screen.shows("idle-4")
        screen.send("f")
        again = screen.shows("burn")
        assert re.search("last [^·]*", page).group() == re.search("last [^·]*", again).group()
        screen.send(" ")
        for _ in range(10):  # a page of the first second may be missed
            screen.send("r")
            with contextlib.suppress(AssertionError):
                screen.shows(lambda text: re.search(r"last \d+ ms", text), timeout=3)
                break
        else:
            pytest.fail(screen.text())
        screen.send("q")
        assert screen.ended()[0] == OK


def test_resize(busy):
    with Screen(busy.pid, "top", "-i", "100ms") as screen:
        screen.shows("profiled.py:")
        screen.resize(8, 40)
        screen.shows(lambda text: "…" in text and all(len(line) <= 40
                                                      for line in text.split("\n")))
        screen.resize(2, 5)
        screen.resize(30, 120)
        screen.shows("profiled.py:")
        screen.send("q")
        assert screen.ended()[0] == OK


def test_save(probing, busy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Screen(busy.pid, "top", "-i", "200ms") as screen:
        screen.shows(a_second)
        screen.send("S")
        name = re.search(r"probing-\d+-\S+\.profile", screen.shows(".profile: ")).group()
        screen.send("q")
        assert screen.ended()[0] == OK
    result = probing(name, "perf", "--json")
    assert result.code == OK, result
    table = probing(name, "query", "-f", "csv", "SELECT sum(wall_ns) > 500000000 AND sum(cpu_ns) > 0 "
                    "FROM profile.samples WHERE tid = %d" % busy.pid)
    assert table.out.split()[-1] in ("1", "true"), table
    assert "burn" in result.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=str)
def test_signals_restore_the_terminal(busy, number):
    with Screen(busy.pid, "top") as screen:
        screen.shows("burn")
        changed = termios.tcgetattr(screen.leader)[3]
        assert not changed & termios.ICANON
        screen.process.send_signal(number)
        code, _ = screen.ended()
    assert code == (OK if number == signal.SIGINT else -number)
    assert profiles.counted(busy.pid) > 0


def test_target_ends(busy):
    with Screen(busy.pid, "top", "-i", "100ms") as screen:
        screen.shows("burn")
        os.kill(busy.pid, signal.SIGKILL)
        code, text = screen.ended()
    assert code == OK and "the process ended" in text and "burn" in text


def test_unknown_terminal(busy):
    with Screen(busy.pid, "top", TERM="no-such-terminal") as screen:
        code, text = screen.ended()
    assert code == 3 and "$TERM" in text and "--batch" in text


def test_odd_names(probing, target):
    process = target("names_for_terminals.py")
    result = probing(process.pid, "top", "--batch", "-n", 1)
    assert result.code == OK and "\\x1b]0;owned\\x07" in result.out, result
    with Screen(process.pid, "top", "-i", "100ms") as screen:
        screen.shows("\\x1b[2J")
        screen.send("t")
        screen.shows("\\x1b[2J")
        screen.send("q")
        assert screen.ended()[0] == OK
        assert b"]0;" not in screen.seen.replace(b"\\x1b]0;", b"")
        assert b"\x07" not in screen.seen and "\u202e".encode() not in screen.seen


def test_many_threads(target, probing):
    process = target(PROGRAM.name, 500)
    # Numbers of threads may begin again meanwhile.
    rows = json.loads(probing(process.pid, "query", "-f", "json", "SELECT tid, name FROM python.threads").out)
    last = max((row["tid"], row["name"]) for row in rows if row["name"].startswith("idle-"))[1]
    process.send(b"go 300\n")
    with Screen(process.pid, "top", "-i", "200ms", size=(40, 100)) as screen:
        screen.shows("burn")
        screen.send("t")
        screen.shows(lambda text: text.count("idle-") > 20)
        screen.send("\x1b[4~")
        screen.shows(last)
        screen.send("q")
        assert screen.ended()[0] == OK
