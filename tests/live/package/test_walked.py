# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python package: threads, frames and values of a process, read from outside."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import support

PACKAGE = Path(__file__).resolve().parents[3] / "package"
os.environ["PROBING_LIBRARY"] = str(Path(support.BINARY).with_name("libprobing.so"))
sys.path.insert(0, str(PACKAGE))

import probing  # noqa: E402


@pytest.fixture
def walked(target, interpreter):
    process = target("walked.py", interpreter=interpreter)
    with probing.attach(process.pid) as program:
        yield program, process


def trainer_of(program):
    """Once it sleeps."""
    end = time.monotonic() + 30
    while True:
        try:
            return next(each.locals["self"] for each in program.threads()[0].frames
                        if "self" in each.locals)
        except probing.Gone:
            assert time.monotonic() < end


def test_values_are_those_of_the_program(walked):
    program, process = walked
    trainer = trainer_of(program)
    assert [trainer.address, trainer.model.address] == [int(each) for each in process.ready]
    assert (trainer.type.name, trainer.model.type.qualname) == ("Trainer", "Slotted")
    assert (int(trainer.step), float(trainer.ratio), trainer.none == None) == \
        (12, 0.25, True)  # noqa: E711
    assert trainer.step == 12 and trainer.step > 11 and trainer.flag and trainer.kind == \
        "class attribute"
    assert [each == 1 << 80 for each in trainer.model.weights] == [False, False, True]
    assert str(trainer.model.label) == "n\u00e4me"
    assert len(trainer.table) == 3 and trainer.table["nested"]["deep"][-1] == 2
    assert {str(key): repr(value) for key, value in trainer.table.items()}["2"] == "'two'"
    assert trainer.table.get("nothing") is None and 2 in trainer.table
    assert [int(each) for each in trainer.queue] == [3, 4, 5]
    assert repr(trainer.pair) == "Pair(left=1, right='r')" and trainer.pair[0] == 1
    assert probing.get(trainer, "type") == "hidden"
    assert [name for name, _ in probing.attributes(trainer)][:2] == ["step", "ratio"]


def test_code_is_named_and_not_run(walked):
    program, process = walked
    trainer = trainer_of(program)
    with pytest.raises(probing.NeedsCode, match="property.*eval"):
        trainer.model.computed
    with pytest.raises(probing.NeedsCode, match="__getattr__ of Lazy is code"):
        trainer.lazy.anything
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        trainer.model.missing
    with pytest.raises(LookupError, match="no such key"):
        trainer.table["missing"]
    with pytest.raises(probing.NeedsCode, match="compared by code"):
        trainer < 3
    os.kill(process.pid, 0)


def test_threads_and_what_they_wait_for(walked):
    program, process = walked
    end = time.monotonic() + 20
    while not program.thread("wanter").waits_for.lock:
        assert time.monotonic() < end
    waits = program.thread("wanter").waits_for
    main = program.threads()[0]
    assert (main.tid, main.main, waits.lock) == (process.pid, True, "RLock")
    if waits.owner:
        assert waits.owner == process.pid
    frame = main.frames[0]
    assert (frame.func, frame.native, frame.source.strip()) == ("run", False, "time.sleep(1000)")
    assert repr(frame.globals["lock"]) == repr(frame.locals["lock"])


def test_objects_of_the_heap(target, newest):
    process = target("walked.py")
    with probing.attach(process.pid) as program:
        found = list(program.find("Trainer", where=lambda each: each.step == 12))
        assert [each.address for each in found] == [int(process.ready[0])]
        assert program.query("SELECT 1 AS a, NULL AS b, 'x' AS c") == [{"a": 1, "b": None, "c": "x"}]


def test_what_is_not_there_any_more(target, newest):
    process = target("walked.py")
    with probing.attach(process.pid) as program:
        trainer = trainer_of(program)
        with pytest.raises(probing.Gone):
            probing.Value(program, 0x1000)
        with pytest.raises(probing.Gone, match="another object"):
            probing.Value(program, trainer.model.address, trainer._prb_type, 0).label
        process.kill()
        time.sleep(0.02)
        with pytest.raises(probing.Error):
            trainer.step


def test_the_same_of_a_core(target, newest, tmp_path):
    process = target("walked.py")
    core = tmp_path / "core"
    subprocess.run(["gcore", "-o", str(core), str(process.pid)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    core = "%s.%d" % (core, process.pid)
    with probing.attach(core) as dead, probing.attach(process.pid) as alive:
        assert repr(trainer_of(dead).table) == repr(trainer_of(alive).table)


def test_a_closed_session(target, newest):
    process = target("walked.py")
    program = probing.attach(process.pid)
    trainer = trainer_of(program)
    program.close()
    with pytest.raises(probing.Error, match="closed"):
        trainer.step
    with pytest.raises(probing.Error, match="No such process"):
        probing.attach(1 << 22)
