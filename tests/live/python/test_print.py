# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing print`: values of live processes, cores and snapshots, as the program itself says them."""

import json
import os
import shutil
import subprocess

import packages
import pytest
import support
import tables

PROGRAMS = support.HERE / "programs"
OK, FAILED, USAGE = 0, 1, 2


def printed(target, *words):
    done = subprocess.run([support.BINARY, "-t", str(target), "print", *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def value(target, *words):
    code, out, err = printed(target, *words)
    assert code == OK and not err, (words, code, out, err)
    return out[:-1]


@pytest.fixture
def asleep(interpreter):
    with support.Target(interpreter, PROGRAMS / "looked_up.py") as process:
        process.truth = json.loads(process.line())
        support.wait_for_sleep(process.pid, "pipe_read")
        yield process


@pytest.mark.every_interpreter
def test_values_are_those_of_the_program(asleep):
    for expression, told in asleep.truth.items():
        assert (expression, value(asleep.pid, "--max-items", "1000", expression)) == \
            (expression, told)


def test_frames_threads_and_modules(asleep):
    assert value(asleep.pid, "--frame", "1", "SHARED[7]") == "'seven'"
    assert value(asleep.pid, "--tid", str(asleep.pid), "argument") == "'given'"
    assert value(asleep.pid, "json.decoder.JSONDecodeError") == \
        "<class 'json.decoder.JSONDecodeError'>"
    # Not a name in the frame, but one that some module has imported.
    assert value(asleep.pid, "encodings.__name__") == "'encodings'"
    assert printed(asleep.pid, "--frame", "9", "self")[0] == FAILED
    assert "has only 2 Python frames" in printed(asleep.pid, "--frame", "2", "self")[2]
    assert "no Python thread 1" in printed(asleep.pid, "--tid", "1", "self")[2]


def test_how_much_is_shown(asleep):
    assert value(asleep.pid, "--max-items", "2", "self.queue") == "deque([50, 51, …+148], maxlen=150)"
    assert value(asleep.pid, "--max-value", "3", "argument") == "'giv'…+2"
    assert "<__main__.Slotted left=[True]" in value(asleep.pid, "--depth", "2", "self")
    assert "<__main__.Slotted object at 0x" in value(asleep.pid, "self")
    assert "'slotted': <__main__.Slotted left=[True]" in value(asleep.pid, "self.__dict__")
    found = json.loads(value(asleep.pid, "--json", "len(self.items)"))
    assert found == {"expression": "len(self.items)", "type": "int", "value": "2",
                     "address": None, "changed": False, "found_in": None}
    found = json.loads(value(asleep.pid, "--json", "argument"))
    assert found["type"] == "str" and found["value"] == "'given'" and found["address"] > 0
    assert value(asleep.pid, "--type", "argument") == "(str at %#x) 'given'" % found["address"]


@pytest.mark.parametrize("words, code, said", [
    ((), USAGE, "no expression given"),
    (("self.doubled",), FAILED, "'doubled' is a property of Node: computed by code"),
    (("self.doubled",), FAILED, "'probing PID eval CODE' runs code"),
    (("self.coded.any",), FAILED, "the __getattr__ of Coded is code"),
    (("self +",), USAGE, "'+' is not understood"),
    (("nowhere",), FAILED, "no variable 'nowhere'"),
    (("--frame", "x", "self"), USAGE, "'x' is no frame"),
    (("--frame", "99999999999", "self"), USAGE, "is no frame"),
])
def test_errors_say_what_to_do(newest, words, code, said):
    with support.Target(newest, PROGRAMS / "looked_up.py") as process:
        process.line()
        got, out, err = printed(process.pid, *words)
    assert (got, out) == (code, "") and said in err, err


OUTWARDS = """
import sys, threading, time
STEP, shadowed = 7, "global"
def inner(argument):
    own = argument + 1
    return sleeps() if argument else own
def sleeps():
    ready.set()
    sys.stdin.read()
def train():
    loss, shadowed = 0.25, "of train"
    inner(1)
class Trainer(object):
    def fit(self):
        epoch = loss = 4
        train()
def work():
    only_here = [5]
    ready.wait()
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.read()
ready = threading.Event()
thread = threading.Thread(target=work)
thread.daemon = True
thread.start()
Trainer().fit()
"""


@pytest.fixture
def nested(interpreter, tmp_path):
    (tmp_path / "nested.py").write_text(OUTWARDS)
    with support.Target(interpreter, tmp_path / "nested.py") as process:
        assert process.line() == "ready"
        yield process


def test_names_are_looked_for_outwards(nested):
    for words, told, where in [
            (["own"], "2", "inner() nested.py:6 (frame 1)"), (["loss"], "0.25", "train() nested.py:12 (frame 2)"),
            (["epoch"], "4", "fit() nested.py:16 (frame 3)"), (["STEP"], "7", ""), (["shadowed"], "'global'", ""),
            (["loss@train"], "0.25", ""), (["loss@fit"], "4", ""), (["loss@Trainer.fit"], "4", ""),
            (["--function", "train", "shadowed"], "'of train'", ""), (["only_here[0]@work"], "5", ""),
            (["--frame", "3", "loss"], "4", ""), (["len"], "<built-in function len>", "")]:
        code, out, err = printed(nested.pid, *words)
        assert (code, out) == (OK, told + "\n"), (words, out, err)
        assert err == (where and "probing: %s is that of %s\n" % (words[0], where)), err
    assert json.loads(value(nested.pid, "--json", "own"))["found_in"] == "inner() nested.py:6 (frame 1)"


@pytest.mark.parametrize("words, said", [
    (("--frame", "0", "loss"), "train() nested.py:12 (frame 2) has it: '--frame 2'"),
    # Its thread may be on its way to the line where it stays.
    (("only_here",), "has it in work() nested.py:2"), (("nowhere",), "in no frame of this thread"),
    (("loss@nowhere",), "no function 'nowhere' runs in any thread"),
    (("--function", "fit", "--frame", "1", "loss"), "by --frame or by --function"),
    (("--function", "fit", "loss@train"), "named twice"), (("loss@train@fit",), "is not understood"),
])
def test_errors_name_the_frame(nested, words, said):
    code, out, err = printed(nested.pid, *words)
    assert code != OK and not out and said in err, err


MOVING = """
import sys
def leaf(depth, number):
    return leaf(depth - 1, number) if depth else number
def train():
    number = same = 0
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    while True:
        number += 1
        same = number
        leaf(number % 40, number)
train()
"""


def test_a_frame_is_found_by_name_while_it_moves(interpreter, tmp_path):
    (tmp_path / "moving.py").write_text(MOVING)
    with support.Target(interpreter, tmp_path / "moving.py") as process:
        assert process.line() == "ready"
        found = []
        for _ in range(support.count(10, 300)):
            code, out, err = printed(process.pid, "number@train")
            assert code == OK, err
            # What could not be read at one instant is marked, and its number may be freed.
            found += [] if "changing" in err else [int(out)]
            # The main module has no such name: the only one is in a frame, whichever runs.
            assert printed(process.pid, "same")[0] == OK
        assert found == sorted(found)


def asked(target, sql, *options):
    done = subprocess.run([support.BINARY, "-t", str(target), "query", "-f", "json", *options, sql],
                          stdout=subprocess.PIPE, check=True)
    return [row[name] for row in json.loads(done.stdout) for name in row]


LOCAL = "SELECT value FROM python.locals WHERE depth = 0 AND name = '%s'"
WHOLE = ("--depth", "3", "--max-items", "1000", "--max-value", "1000")


def test_sql_shows_as_much_as_is_wanted(asleep):
    """Variables, attributes and objects, by options and by SET."""
    inner, argument = LOCAL % "self", LOCAL % "argument"
    usual, whole = asked(asleep.pid, inner)[0], asked(asleep.pid, inner, *WHOLE)[0]
    assert whole == value(asleep.pid, *WHOLE, "self") and len(whole) > len(usual)
    assert asked(asleep.pid, argument, "--max-value", "3") == ["'giv'…+2"]
    assert asked(asleep.pid, "SET probing.values.max_value = 3; " + argument) == ["'giv'…+2"]
    parts = "SELECT a.value FROM python.locals l, python.attributes(l.address) a " \
            "WHERE l.depth = 0 AND l.name = 'self' AND a.name = 'queue'"
    assert asked(asleep.pid, parts, "--max-items", "2") == ["deque([50, 51, …+148], maxlen=150)"]
    objects = "SELECT repr FROM python.objects WHERE type = 'collections.deque'"
    assert "deque([50, 51, …+148], maxlen=150)" in asked(asleep.pid, objects, "--max-items", "2")
    with pytest.raises(subprocess.CalledProcessError):
        asked(asleep.pid, "SELECT 1", "--max-items", "999999999")
    with pytest.raises(subprocess.CalledProcessError):
        asked(asleep.pid, "SET probing.values.depth = 'deep'")


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_core_tells_the_same(asleep, tmp_path):
    core = tables.core_of(asleep.pid, tmp_path)
    for expression, told in asleep.truth.items():
        assert (expression, value(core, "--max-items", "1000", expression)) == (expression, told)
    assert asked(core, LOCAL % "self", *WHOLE) == asked(asleep.pid, LOCAL % "self", *WHOLE)


def test_snapshot_has_attributes_of_variables(newest, tmp_path):
    with support.Target(newest, PROGRAMS / "looked_up.py") as process:
        process.line()
        support.wait_for_sleep(process.pid, "pipe_read")
        subprocess.run([support.BINARY, "-p", str(process.pid), "snapshot", "-o",
                        tmp_path / "file.snap"], check=True, stdout=subprocess.DEVNULL)
        assert value(tmp_path / "file.snap", "self") == value(process.pid, "self")
        assert value(tmp_path / "file.snap", "argument") == "'given'"
        code, out, err = printed(tmp_path / "file.snap", "os.path.__doc__.nothing")
    assert code == FAILED and not out and err


def test_what_a_thread_changes_all_the_time_is_of_one_instant(interpreter):
    with support.Target(interpreter, PROGRAMS / "changes.py") as process:
        process.line()
        for _ in range(support.count(40, 1000)):
            code, out, err = printed(process.pid, "vars(STATE)")
            assert code == OK, err
            # Values that could not be read at one instant are marked, and only those may be torn.
            if "changing" in err or "<unreadable at" in out:
                continue
            pair = eval(out)
            assert pair["a"] == pair["b"] == pair["both"][0], (out, err)


def test_what_a_name_may_become(asleep):
    def names(*words):
        return value(asleep.pid, "--names", *words).split("\n")

    assert names("ar") == ["argument"]
    assert {"argument", "self", "SHARED", "json"} <= set(names())
    assert {"self.items", "self.queue", "self.method", "self.doubled"} <= set(names("self."))
    assert not [name for name in names("self.") if name.startswith("self._")]
    assert "self.__class__" in names("self.__c")
    assert "self.slotted.left" in names("self.slotted.le")
    assert names("--frame", "1", "SHA") == ["SHARED"]
    assert printed(asleep.pid, "--names", "nowhere.x")[0] == FAILED


NAMED = """
import sys, time
class Holder(object): pass
holder = Holder()
for name in ("plain", "$(touch harmed)", "`touch harmed`", "a b", "x;y", "caf\u00e9", "\x1b[2J", "*", "9"):
    setattr(holder, name, 1)
sys.stdout.write("ready\\n")
sys.stdout.flush()
time.sleep(1000)
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_plain_names_only(newest, tmp_path):
    program = tmp_path / "named.py"
    program.write_text(NAMED)
    script = subprocess.check_output([support.BINARY, "completion", "bash"]).decode() + """
COMP_WORDS=(probing -t "$1" print holder.)
COMP_CWORD=4
_probing
printf '%s\\n' "${COMPREPLY[@]}"
"""
    with support.Target(newest, program) as process:
        process.line()
        done = subprocess.run(
            ["bash", "-c", script, "bash", str(process.pid)], cwd=tmp_path, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": "%s:/usr/bin:/bin" % os.path.dirname(support.BINARY)})
    assert (done.stdout.decode(), done.stderr.decode()) == ("holder.plain\n", "")
    assert not (tmp_path / "harmed").exists()


def test_objects_of_an_orm():
    """Attributes that SQLAlchemy has loaded are shown; for others it says that code is needed."""
    with support.Program([packages.need("sqlalchemy"), PROGRAMS / "mapped.py"]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        assert [value(process.pid, each) for each in (
            "order.total", "order.user_id", "user.name", "user.orders[0].total",
            "user.orders[0].user.name", "len(user.orders)")] == ["1.25", "1", "'ann'", "2.0", "'ann'", "1"]
        # The password of a named tuple, by name, by number, and as a row.
        assert [value(process.pid, each) for each in ("url.password", "url[2]", "url[-5]")] == ["<hidden>"] * 3
        assert value(process.pid, "len(url)") == "7" and "hunter2" not in value(process.pid, "url")
        row = tables.query(process.pid, "SELECT i.value, i._error FROM python.locals l, python.items(l.address) i "
                                        "WHERE l.name = 'url'")
        assert row == [{"value": None, "_error": "the class URL hides its items"}]
        code, out, err = printed(process.pid, "order.user")
        assert code == FAILED and not out
        assert "its 'user' is a InstrumentedAttribute of Order: computed by code, which is not run" in err
