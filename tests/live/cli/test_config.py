# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a process: read, changed, refused; from the environment, SQL and Python."""

import json
from pathlib import Path

import pytest
import support
from environment import OK, USAGE

PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
NAMES = ["probing.max_memory", "probing.memory.interval", "probing.retention_days",
         "probing.sample_rate", "probing.torch.nan", "probing.torch.profiling", "probing.watch"]


def values(probing, pid):
    done = probing(pid, "config", "--json")
    assert done.code == OK, done
    return {row["key"]: row["value"] for row in json.loads(done.out)}


def test_keys_are_described(probing):
    keys = json.loads(probing("config", "--keys").out)
    assert [key["key"] for key in keys] == NAMES
    assert all(key["description"] and key["details"] and key["effect"] for key in keys)
    assert probing("config").code == USAGE


def test_without_an_agent(probing, target):
    pid = target("sleeper.py").pid
    done = probing(pid, "config")
    assert done.code == OK and "has no agent" in done.err
    assert [line.split()[0] for line in done.out.splitlines()] == NAMES
    assert probing(pid, "cfg", "retention_days").out == "7\n"
    done = probing(pid, "config", "sample_rate=0.5", "--no-inject")
    assert done.code != OK and not done.out
    assert probing(pid, "agent").code != OK


def test_changes(probing, target):
    pid = target("sleeper.py").pid
    done = probing(pid, "c", "probing.sample_rate=0.25")
    assert (done.code, done.out) == (OK, "probing.sample_rate = 0.25 (has effect at once)\n"), done
    for word, value in (("max_memory=1GB", "1000000000"), ("max_memory=64 MiB", "67108864"),
                        ("Probing.Max_Memory=2000000", "2000000"),
                        ("watch=loss@train, a['b=c']", "loss@train, a['b=c']")):
        assert probing(pid, "config", word).code == OK
        assert probing(pid, "config", word.split("=")[0]).out == value + "\n"
    assert probing(pid, "query", "SET probing.retention_days = 2.5").code == OK
    assert values(probing, pid) == {
        "probing.max_memory": "2000000", "probing.memory.interval": "0",
        "probing.retention_days": "2.5", "probing.sample_rate": "0.25", "probing.torch.nan": "0",
        "probing.torch.profiling": "0",
        "probing.watch": "loss@train, a['b=c']"}
    done = probing(pid, "query", "-f", "json",
                   "SELECT name, value FROM information_schema.df_settings WHERE value = '2.5'")
    assert json.loads(done.out) == [{"name": "probing.retention_days", "value": "2.5"}]


@pytest.mark.parametrize("word, text", [
    ("sample_rate=2", "a number from 0 to 1"), ("sample_rate=", "a number from 0 to 1"),
    ("sample_rate=nan", "a number from 0 to 1"), ("max_memory=1XB", "such as 500MB or 1GiB"),
    ("max_memory=1", "a number of bytes from 1048576"), ("watch=" + "x" * 512, "up to 511 bytes"),
    ("sample_rat=1", "did you mean 'probing.sample_rate'?"),
    ("interval", "did you mean 'probing.memory.interval'?"),
    ("torch", "did you mean 'probing.torch.nan' or 'probing.torch.profiling'?"),
    ("nothing=1", "'probing PID config' lists them"), ("=1", "there is no setting ''")])
def test_what_makes_no_sense(probing, target, word, text):
    done = probing(target("sleeper.py").pid, "config", word)
    assert done.code == USAGE and not done.out and text in done.err, done


@pytest.mark.parametrize("key, text", [
    ("max_mem", "did you mean 'probing.max_memory'?"), ("probing.watc", "did you mean 'probing.watch'?"),
    ("nothing", "'SHOW ALL' lists them")])
def test_an_unknown_key_in_sql(probing, target, key, text):
    done = probing(target("sleeper.py").pid, "query", "SET %s = 1" % key)
    assert done.code == USAGE and not done.out and text in done.err, done


def test_the_environment(probing, target):
    process = target("sleeper.py", env={"PROBING_SAMPLE_RATE": "0.1", "PROBING_MAX_MEMORY": "1GiB",
                                        "PROBING_RETENTION_DAYS": "many",
                                        "PROBE_TORCH_EXPRS": "loss@train"})
    assert probing(process.pid, "inject").code == OK
    assert values(probing, process.pid) == {
        "probing.max_memory": "1073741824", "probing.memory.interval": "0",
        "probing.retention_days": "7", "probing.sample_rate": "0.1", "probing.torch.nan": "0",
        "probing.torch.profiling": "0",
        "probing.watch": "loss@train"}


def test_memory_of_an_idle_process(probing, target, tmp_path):
    """The agent's thread writes rows while the interval is set, and sleeps again afterwards."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    pid = target("sleeper.py", env={"PROBING_DATA_DIR": str(folder)}).pid
    assert probing(pid, "config", "memory.interval=0.01").code == OK
    sql = "SELECT count(*) AS n, min(memory_mb) AS least FROM memory_usage"

    def row():
        done = probing(pid, "query", "-f", "json", sql)
        return json.loads(done.out)[0] if done.code == OK else {"n": 0}
    while row()["n"] < 3:
        pass
    assert row()["least"] > 1
    assert probing(pid, "config", "memory.interval=0").code == OK
    before = row()["n"]
    assert row()["n"] == before


def leftovers(folder, python, code, **variables):
    code = "import sys; sys.path.insert(0, %r); import probing\n%s" % (str(PACKAGE), code)
    with support.Program([python.exe, "-c", code],
                         env={**python.env, "PROBING_DATA_DIR": str(folder),
                              "PROBING_AGENT": str(AGENT), **variables}) as process:
        process.line()
    return sorted(path.name for path in folder.iterdir())


def test_what_ended_processes_have_left(newest, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    code = "import os; probing.event('a'); print(os.getpid(), flush=True)"
    first = leftovers(folder, newest, code)
    assert len(first) == 1
    assert set(first) < set(leftovers(folder, newest, code))
    # Of another pid namespace, and no folder of ours: both stay.
    other, = folder.glob(first[0])
    ring = other / "python.trace_event.ring"
    content = bytearray(ring.read_bytes())
    number = Path("/proc/self/ns/pid").stat().st_ino.to_bytes(8, "little")
    place = content.index(number)
    content[place:place + 8] = bytes(8)
    ring.write_bytes(content)
    (folder / "4194299-abc").mkdir()
    left = leftovers(folder, newest, code, PROBING_RETENTION_DAYS="0")
    assert len(left) == 3 and {first[0], "4194299-abc"} < set(left)
    left = leftovers(folder, newest, code, PROBING_MAX_MEMORY="50MB")
    assert len(left) == 4
    left = leftovers(folder, newest, code, PROBING_MAX_MEMORY="7MB")
    assert len(left) == 3


def test_memory_of_one_process(newest, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    code = """
probing.table("a", "x integer")
try:
    probing.table("b", "x integer")
except OSError as error:
    assert "quota" in str(error), error
    probing.config["max_memory"] = 10 ** 8
    probing.table("b", "x integer")
    print("made", flush=True)
"""
    left, = leftovers(folder, newest, code, PROBING_MAX_MEMORY="6MB")
    assert sorted(path.name for path in (folder / left).iterdir()) == ["user.a.ring", "user.b.ring"]
