# SPDX-License-Identifier: GPL-3.0-or-later
"""torch.flight_recorder, with a stand-in for torch's library: its answers and its exceptions, without the
GIL. cluster/test_collectives.py has the real one."""
import json
import subprocess

import pytest

import environment
import support
from environment import FAILED, OK, TIMEOUT

SQL = "SELECT * FROM torch.flight_recorder"
PROGRAM = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
holding = ctypes.PyDLL(None)
print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "hold":
        print("holds", flush=True)
        holding.pause()
    library.set_mode(word.encode())
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    environment.need("g++")
    path = tmp_path_factory.mktemp("torch") / "libtorch_cpu.so.2.14"
    subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-o", path,
                    support.HERE / "programs" / "flight_recorder.cpp"], check=True)
    return path


@pytest.fixture
def recorded(library):
    with support.Program(["/usr/bin/python3", "-c", PROGRAM, str(library)]) as process:
        assert process.line() == "ready"
        yield process


@pytest.fixture
def asked(recorded, probing):
    """The same, with an agent."""
    assert probing(recorded.pid, "inject").code == OK
    return recorded


def set_mode(process, word):
    process.send(word.encode() + b"\n")
    assert process.line() == "done"


def rows(probing, process):
    done = probing(process.pid, "query", "-f", "json", SQL)
    assert done.code == OK, done
    return json.loads(done.out)


def test_entries(probing, asked):
    first, second = rows(probing, asked)
    assert first == {
        "record_id": 0, "group_name": "0", "group_desc": "default_pg", "backend": "gloo",
        "operation": "all_reduce", "seq": 1, "p2p_seq": 0, "state": "completed",
        "created": 1700000000.5, "started": None, "completed": None, "duration": 2.5,
        "input_sizes": "[[4,8]]", "input_dtypes": '["Float"]', "output_sizes": "[[4,8]]",
        "output_dtypes": '["Float"]', "timeout": 1800000.0}
    assert (second["seq"], second["state"]) == (2, "scheduled")


def test_while_the_gil_is_held(probing, asked):
    asked.send(b"hold\n")
    assert asked.line() == "holds"
    assert len(rows(probing, asked)) == 2
    assert probing(asked.pid, "eval", "1", "--timeout", "0.3").code == TIMEOUT


def test_exceptions_do_not_reach_the_program(probing, asked):
    set_mode(asked, "throw")
    for _ in range(100):
        assert rows(probing, asked) == []  # rows of the other function
    set_mode(asked, "good")
    assert len(rows(probing, asked)) == 2 and asked.alive()
    done = probing(asked.pid, "eject")
    assert done.code == OK and "unmapped" in done.out, done


@pytest.mark.parametrize("mode, code, words", [
    ("broken", FAILED, "torch.flight_recorder: what the process says is not understood"),
    ("huge", FAILED, "the flight recorder says more than 32 MiB"),
    ("hang", TIMEOUT, "the flight recorder did not answer within 5 s"),
])
def test_what_is_no_answer(probing, asked, mode, code, words):
    set_mode(asked, mode)
    done = probing(asked.pid, "query", SQL)
    assert done.code == code and words in done.err and "\x1b" not in done.err, done


def test_strange_answers(probing, asked):
    set_mode(asked, "strange")
    found = rows(probing, asked)
    assert all(row["record_id"] is None and row["created"] is None for row in found)
    set_mode(asked, "short")
    assert rows(probing, asked) == []


def test_reading_loads_nothing(probing, recorded):
    done = probing(recorded.pid, "query", SQL)
    assert done.code == OK and "the process has no agent" in done.err, done
    with open("/proc/%d/maps" % recorded.pid, encoding="utf-8") as maps:
        assert "libprobing" not in maps.read()


def test_no_torch(probing, target):
    process = target("sleeper.py")
    assert probing(process.pid, "inject").code == OK
    done = probing(process.pid, "query", SQL)
    assert done.code == OK and "torch is not loaded in this process" in done.err, done
