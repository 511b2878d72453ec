# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing memory --sites`: allocating lines, leaks, and the removal of the hooks."""
import json
import os
import signal
import subprocess
import time

import pytest

import pauses
import support
from environment import OK, UNSUPPORTED, USAGE

SUPPORTED = [each for each in support.INTERPRETERS if each.version >= (3, 7)]
WITHOUT_GIL = [each for each in SUPPORTED if each.free_threaded]
# Where threads cannot be stopped, some thread may still be in the library.
STAYING = {each.exe for each in WITHOUT_GIL if not pauses.agent_holds(each)}
ROUNDS = 5000
HEAVY, LIGHT, LEAK = 30000, 10000, 4000
EVERY = 65536


class Sampling:
    """The command, from when the process's allocations are sampled until Ctrl-C."""

    def __init__(self, pid, *options):
        self._command = subprocess.Popen(
            [support.BINARY, "-v", str(pid), "memory", "--sites", "3600s", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = []
        for line in self._command.stderr:
            self.said.append(line.decode())
            if "allocations are sampled" in self.said[-1]:
                break
        else:
            self.end()
            raise AssertionError("".join(self.said))
        self.since = time.monotonic()

    def pass_the_tail(self):
        """Allocations in the last tenth of the time are not called leaks."""
        now = time.monotonic()
        while time.monotonic() < now + 0.3 * (now - self.since) + 0.1:
            time.sleep(0.01)

    def end(self, by=signal.SIGINT):
        if self._command.poll() is None:
            self._command.send_signal(by)
        out, err = self._command.communicate(timeout=120)
        self.code = self._command.returncode
        self.said.append(err.decode())
        return out.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._command.poll() is None:
            self._command.kill()
        self._command.communicate()


def sample(process, *options, count=ROUNDS):
    with Sampling(process.pid, "--every", str(EVERY), *options) as sampling:
        do(process, count)
        sampling.pass_the_tail()
        out = sampling.end()
        assert sampling.code == OK, sampling.said
    return out


def do(process, word):
    process.send(b"%s\n" % str(word).encode())
    return process.line()


def is_mapped(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        return "libprobing-agent" in maps.read()


def check_gone(probing, process):
    """Nothing of it is left: else the library could not be unmapped."""
    done = probing(process.pid, "eject", "--json")
    assert done.code == OK, done
    if os.readlink("/proc/%d/exe" % process.pid) in STAYING:
        assert is_mapped(process.pid) and "needs no GIL" in json.loads(done.out)["reason"], done
    else:
        assert not is_mapped(process.pid), done


def by_function(found):
    return {row["function"].split(".")[-1]: row for row in found["sites"]}


@pytest.mark.parametrize("interpreter", SUPPORTED, ids=repr)
def test_sites(probing, target, interpreter):
    process = target("allocating.py", interpreter=interpreter)
    found = json.loads(sample(process, "--json"))
    assert found["lost_bytes"] == found["untracked"] == found["nameless_frames"] == 0, found
    assert not found["stays"] and not found["full"]
    # All bytes are counted: those of the rounds, and a little more.
    expected = ROUNDS * (HEAVY + LIGHT + LEAK)
    assert expected <= found["bytes"] <= 1.3 * expected, found["bytes"]
    sites = by_function(found)
    whole = sum(row["bytes"] for row in found["sites"])
    assert abs(whole / found["bytes"] - 1) < 0.15, (whole, found["bytes"])
    for name, size in ("heavy", HEAVY), ("light", LIGHT), ("leak", LEAK):
        assert abs(sites[name]["bytes"] / whole - size / 44100) < 0.06, (name, sites)
        assert sites[name]["file"].endswith("allocating.py")
    # The lines are the allocating ones.
    with open(sites["heavy"]["file"], encoding="utf-8") as file:
        lines = file.read().split("\n")
    assert "bytes(30000)" in lines[sites["heavy"]["line"] - 1]
    assert "bytearray(10000)" in lines[sites["light"]["line"] - 1]
    check_leaks(found)
    assert do(process, 10) == "did 10"
    check_gone(probing, process)
    assert do(process, 10) == "did 10"


def check_leaks(found):
    leaks = {row["function"]: row for row in found["leaks"]}
    kept = leaks["leak"]
    assert 0.6 < kept["alive_bytes"] / (ROUNDS * LEAK) < 1.5, kept
    assert [frame["function"] for frame in kept["callers"]] == [
        "one_round", "rounds", "main", "<module>"], kept
    for name in "heavy", "light":
        alive = leaks.get(name, {"alive_bytes": 0})["alive_bytes"]
        assert alive < 0.02 * ROUNDS * LEAK, leaks[name]


def test_text_and_rows(probing, target, newest):
    """The screen, and the table that answers the query as it is typed."""
    process = target("allocating.py", interpreter=newest)
    out = sample(process)
    lines = out.split("\n")
    assert lines[0].startswith("%d  " % process.pid)
    assert " allocated for Python in " in lines[1] and "one for each 64.0 KiB" in lines[1], out
    assert lines[3].split() == ["allocated", "share", "(95", "%)", "alive", "where"], out
    assert "  heavy (allocating.py:" in lines[4], out
    assert "Alive at the end, and allocated before the last " in out
    done = probing(process.pid, "query", "-f", "json",
                   "SELECT function_name, sum(allocated_bytes) as total_alloc FROM memory_allocations "
                   "WHERE timestamp > now() - interval '1 hour' GROUP BY function_name "
                   "ORDER BY total_alloc DESC")
    assert done.code == OK, done
    rows = json.loads(done.out)
    assert [row["function_name"] for row in rows[:3]] == ["heavy", "light", "leak"], rows
    assert abs(rows[0]["total_alloc"] / (ROUNDS * HEAVY) - 1) < 0.2, rows
    done = probing(process.pid, "query", "-f", "json",
                   "SELECT alive_bytes, stack FROM memory_allocations WHERE function_name = 'leak'")
    (row,) = json.loads(done.out)
    assert row["stack"] == "<module>;main;rounds;one_round;leak" and row["alive_bytes"] > 0


@pytest.mark.parametrize("name", ["out.html", "out.svg", "out.collapsed"])
def test_flame_graphs(target, newest, tmp_path, name):
    process = target("allocating.py", interpreter=newest)
    sample(process, "-o", str(tmp_path / name), "--json")
    text = (tmp_path / name).read_text("utf-8")
    if name == "out.collapsed":
        weights = {line.rsplit(" ", 1)[0].split(";")[-1].split(" ")[0]: int(line.rsplit(" ", 1)[1])
                   for line in text.splitlines()}
        assert abs(weights["heavy"] / (ROUNDS * HEAVY) - 1) < 0.2, weights
    elif name == "out.svg":
        assert "heavy" in text and "MiB allocated" in text
    else:
        assert '"bytes":true' in text and '"heavy"' in text


@pytest.mark.parametrize("interpreter", SUPPORTED, ids=repr)
def test_c_frames(probing, target, interpreter):
    """C functions appear at their calls, without the interpreter's own."""
    process = target("allocating.py", interpreter=interpreter)
    found = json.loads(sample(process, "--cc", "--json", count="sort 4000"))
    assert found["native"] and found["lost_bytes"] == found["nameless_frames"] == 0, found
    kept = [row for row in found["leaks"] if row["function"] == "compare"]
    whole = sum(row["alive_bytes"] for row in kept)
    assert 0.5 < whole / (4000 * 4000) < 1.6, found["leaks"]
    for row in kept:
        check_c_callers(row["callers"])
    native = [row for row in found["sites"] if row["module"]]
    assert native and {row["python"]["function"] for row in native if "python" in row} & {"sort", "compare"}
    with open(kept[0]["file"], encoding="utf-8") as file:
        assert "bytes(4000)" in file.read().split("\n")[kept[0]["line"] - 1]
    assert do(process, 10) == "did 10"
    check_gone(probing, process)
    assert do(process, 10) == "did 10"


def check_c_callers(callers):
    names = [frame["function"] for frame in callers]
    at = names.index("sort")
    assert names[at + 1:at + 3] == ["main", "<module>"], names
    assert all(frame["module"] for frame in callers[:at]), callers
    assert any("/libc" in frame["module"] for frame in callers[:at]), callers
    assert not any(name.startswith(("_PyEval", "PyObject_")) for name in names), names


def test_c_frames_as_text(target, newest, tmp_path):
    process = target("allocating.py", interpreter=newest)
    out = sample(process, "--cc", "-o", str(tmp_path / "out.collapsed"), count="sort 4000")
    assert "  compare (allocating.py:" in out and " [libc.so.6]\n" in out, out
    stacks = (tmp_path / "out.collapsed").read_text("utf-8")
    (line,) = [line for line in stacks.splitlines() if ";compare (" in line]
    places = [line.find(word) for word in ("<module> ", ";sort ", " [libc.so.6];", ";compare ")]
    assert places[0] == 0 and places == sorted(places), line


def test_its_time_is_over(probing, target, newest):
    """Without Ctrl-C it ends by itself, also of a process that does nothing."""
    process = target("allocating.py", interpreter=newest)
    done = probing(process.pid, "memory", "--sites", "0.2s")
    assert done.code == OK and "no allocation was sampled" in done.out, done
    check_gone(probing, process)


def test_tracemalloc_comes_meanwhile(probing, target, newest):
    """Its allocator calls ours: ours stays, does nothing, and goes when it can."""
    process = target("allocating.py", interpreter=newest)
    with Sampling(process.pid, "--json") as sampling:
        assert do(process, "trace") == "did trace"
        assert do(process, 100) == "did 100"
        found = json.loads(sampling.end())
    assert found["stays"], found
    done = probing(process.pid, "eject", "--json")
    assert done.code == OK and "tracemalloc" in json.loads(done.out)["reason"], done
    assert is_mapped(process.pid)
    again = probing(process.pid, "memory", "--sites", "0.1s")
    assert again.code == UNSUPPORTED and "another allocator" in again.err, again
    assert do(process, "untrace") == "did untrace"
    assert do(process, 100) == "did 100"
    # It has put ours back, which is on top again.
    again = probing(process.pid, "memory", "--sites", "0.1s")
    assert again.code == OK, again
    check_gone(probing, process)
    assert do(process, 100) == "did 100"


def test_tracemalloc_is_there_before(probing, target, newest):
    process = target("allocating.py", interpreter=newest)
    assert do(process, "trace") == "did trace"
    found = json.loads(sample(process, "--json"))
    assert by_function(found)["heavy"]["bytes"] > 0 and not found["stays"]
    check_gone(probing, process)
    assert do(process, "untrace") == "did untrace"


def test_the_command_is_killed(probing, target, newest):
    """The agent sees it, and takes the allocators away."""
    process = target("allocating.py", interpreter=newest)
    with Sampling(process.pid, "--json") as sampling:
        assert do(process, 100) == "did 100"
        sampling.end(signal.SIGKILL)
    assert do(process, 100) == "did 100"
    check_gone(probing, process)
    assert do(process, 100) == "did 100"


def test_one_at_a_time(probing, target, newest):
    process = target("allocating.py", interpreter=newest)
    with Sampling(process.pid, "--json"):
        done = probing(process.pid, "memory", "--sites", "1s")
        assert done.code == UNSUPPORTED and "another client samples" in done.err, done


def test_a_child(probing, target, newest):
    """A child forked meanwhile has the allocators, which do nothing there."""
    process = target("allocating.py", interpreter=newest)
    with Sampling(process.pid, "--json") as sampling:
        assert do(process, "fork") == "did 0"
        assert do(process, 100) == "did 100"
        found = json.loads(sampling.end())
    # The child's rounds are not the parent's.
    assert found["bytes"] < 300 * (HEAVY + LIGHT + LEAK), found["bytes"]
    check_gone(probing, process)


@pytest.mark.parametrize(
    "interpreter", [each for each in SUPPORTED if each.version >= (3, 8)], ids=repr)
def test_another_interpreter(probing, target, interpreter):
    """Its bytes are counted, and it is not sampled: its code objects may go with it at any time."""
    process = target("allocating.py", interpreter=interpreter)
    with Sampling(process.pid, "--every", str(EVERY), "--json") as sampling:
        assert do(process, "sub") == "did sub"
        assert do(process, 100) == "did 100"
        found = json.loads(sampling.end())
    assert found["other_bytes"] > 25e6, found
    assert found["bytes"] > found["other_bytes"] + 100 * (HEAVY + LIGHT)
    assert "<string>" not in {row["file"] for row in found["sites"]}
    check_gone(probing, process)
    assert do(process, 10) == "did 10"


def test_another_interpreter_stays(probing, target, newest):
    """Its threads have a GIL of their own, so it is unknown if one is in our code. Before 3.12 there is
    one GIL for all."""
    process = target("allocating.py", interpreter=newest)
    with Sampling(process.pid, "--json") as sampling:
        assert do(process, "sub stays") == "did sub stays"
        sampling.end()
    done = probing(process.pid, "eject", "--json")
    reason = json.loads(done.out)["reason"]
    assert done.code == OK and ("another interpreter" in reason if newest.version >= (3, 12) else not reason), done
    assert do(process, 10) == "did 10"


@pytest.mark.parametrize("interpreter", support.one_per_version()[-1:] + WITHOUT_GIL, ids=repr)
def test_on_and_off_under_load(probing, target, interpreter):
    """Threads that allocate all the time, and check their memory, do not notice."""
    process = target("allocating.py", "threads", interpreter=interpreter)
    for _ in range(support.count(10, 1000)):
        done = probing(process.pid, "memory", "--sites", "1ms", "--every", "4KiB", "--json")
        assert done.code == OK, done
        assert process.alive()
    assert do(process, 10) == "did 10"
    check_gone(probing, process)
    assert do(process, 10) == "did 10"


@pytest.mark.parametrize("interpreter", WITHOUT_GIL, ids=repr)
def test_threads_at_once(probing, target, interpreter):
    """Parallel threads: each is counted, each block's end is seen, and the lines are those of the code,
    also where a thread has a copy of its bytecode."""
    process = target("allocating.py", interpreter=interpreter)
    found = json.loads(sample(process, "--json", count="beside 1500"))
    assert found["lost_bytes"] == found["untracked"] == found["nameless_frames"] == 0, found
    expected = 4 * 1500 * (HEAVY + LIGHT + LEAK)
    assert 0.97 * expected <= found["bytes"] <= 1.3 * expected, found["bytes"]
    sites = by_function(found)
    with open(sites["heavy"]["file"], encoding="utf-8") as file:
        lines = file.read().split("\n")
    for name, size, words in (("heavy", HEAVY, "bytes(30000)"), ("light", LIGHT, "bytearray(10000)"),
                              ("leak", LEAK, "bytes(4000)")):
        assert abs(sites[name]["bytes"] / (4 * 1500 * size) - 1) < 0.25, (name, sites)
        assert words in lines[sites[name]["line"] - 1], sites[name]
    (kept,) = [row for row in found["leaks"] if row["function"] == "leak"]
    assert 0.6 < kept["alive_bytes"] / (4 * 1500 * LEAK) < 1.5, kept
    for name in "heavy", "light":
        assert not [row for row in found["leaks"] if row["function"] == name], found["leaks"]
    assert do(process, 10) == "did 10"
    check_gone(probing, process)
    assert do(process, 10) == "did 10"


@pytest.mark.parametrize("options, words", [
    (["--sites", "1s", "--growth", "1s"], "exclude each other"),
    (["--every", "4KiB"], "are for --sites"),
    (["--cc"], "are for --sites"),
    (["--sites", "1s", "--every", "2GiB"], "--every cannot be '2GiB'"),
    (["--sites", "1s", "-o", "x.pb.gz"], "pprof is of times"),
])
def test_usage(probing, target, newest, options, words):
    process = target("allocating.py", interpreter=newest)
    done = probing(process.pid, "memory", *options)
    assert done.code == USAGE and words in done.err, done
