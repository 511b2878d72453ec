# SPDX-License-Identifier: GPL-3.0-or-later
"""Recordings with C frames: of extensions, of threads without Python, of programs without it."""
import json
import os
import platform
import re
import subprocess

import pytest

import profiles
import support
from profiles import Recording, profile

SOURCE = support.HERE / "programs" / "profiled_native.c"
PROGRAM = support.HERE / "programs" / "profiled_native.py"
SECONDS = support.count(4, 20)
SAMPLES, RATE = support.count(800, 25000), support.count(1000, 2000)
WITH_CTYPES = [each for each in support.one_per_version((3, 8)) if each.has_ctypes]
NEWEST = [each for each in support.one_per_version((3, 8), (3, 13)) if each.has_ctypes][-1]


def build(folder, name, *options):
    path = folder / name
    subprocess.run(["gcc", "-O2", "-g", "-pthread", *options, "-o", path, SOURCE, "-ldl"],
                   check=True)
    return path


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("library"), "profiled_native.so", "-shared", "-fPIC")


@pytest.fixture(scope="module")
def threads_library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("library"), "threads.so", "-shared", "-fPIC", "-DTHREADS")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(tmp_path_factory.mktemp("program"), "profiled_program", "-DPROGRAM")


def recorded_work(target, *options):
    """(recording, the functions' own measurements) of some work, from before to after it."""
    recording = Recording(target.pid, "--json", "--cc", "--duration", "300s", *options)
    recording.samples()
    target.send(b"go %f\n" % SECONDS)
    words = target.line(timeout=300).split()
    # The kernel counts the time of a thread that runs at its ticks only.
    support.wait_for_sleep(target.pid, "pipe_read")
    recording.interrupt()
    return recording.result(), dict(zip(words[::2], map(float, words[1::2])))


def check_shares(result, spent):
    """Of n samples, four times the standard error: once in 16,000 that is chance."""
    whole, found = sum(spent.values()), profiles.shares(result)
    for name, milliseconds in spent.items():
        true = milliseconds / whole
        error = 4 * (true * (1 - true) / result["independent_samples"]) ** 0.5
        assert abs(found[name] / 100 - true) < error + 0.01, (name, found[name], spent)


def stacks(path):
    """[names, outermost first] of each line of a collapsed file."""
    lines = [line.rpartition(" ")[0] for line in path.read_text().splitlines()]
    return [[re.sub(r" [(\[].*", "", label) if label[0] != "[" else label
             for label in line.split(";")] for line in lines]


@pytest.mark.parametrize("interpreter", WITH_CTYPES, ids=repr)
def test_shares(interpreter, library):
    with support.Target(interpreter, PROGRAM, library) as target:
        assert target.line() == "ready"
        support.wait_for_sleep(target.pid, "pipe_read")
        before = profiles.counted(target.pid)
        result, spent = recorded_work(target, "--rate", 250)
        support.wait_for_sleep(target.pid, "pipe_read")
        used = profiles.counted(target.pid) - before
    check_shares(result, spent)
    assert result["native"] and profiles.readable(result)
    assert abs(result["weight_ns"] - used) < 0.01 * used
    kinds = {row["func"]: (row["kind"], row["module"]) for row in result["functions"]}
    assert kinds["native_long"] == ("native", str(library))
    assert kinds["in_python"] == ("python", None)
    assert not any(re.match("_PyEval_EvalFrameDefault", name) for name in kinds)


def test_without_python(program):
    with support.Program([program]) as target:
        assert target.line() == "ready"
        result, spent = recorded_work(target, "--rate", 250)
    check_shares(result, spent)
    assert result["python"] is None and result["cost"]["unreadable"] == 0
    found = profiles.shares(result)
    assert found["main"] > 99 and found["go"] > 99
    assert all(row["kind"] == "native" for row in result["functions"]), result["functions"]


def test_text(probing, program):
    with support.Program([program]) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        result = probing(target.pid, "perf", "-C", "--duration", "1s")
        lines = probing(target.pid, "perf", "-C", "--duration", "1s", "--lines")
    assert result.code == 0 and "\nno Python · " in result.out
    assert re.search(r"^ +\d+\.\d %  .* %  main +\[profiled_program\]$", result.out, re.M), result
    assert re.search(r"  native_burn +profiled_native.c:\d+ \[profiled_program\]$", lines.out,
                     re.M), lines


@pytest.mark.parametrize("extension", ["collapsed", "speedscope.json"])
def test_files(probing, tmp_path, library, extension):
    file = tmp_path / ("run." + extension)
    with support.Target(NEWEST, PROGRAM, library) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        assert probing(target.pid, "perf", "--cc", "-d", "1s", "-o", file).code == 0
    text = file.read_text()
    if extension == "collapsed":
        assert re.search(r";work \(%s:\d+\);.*;native_long \[profiled_native.so\];"
                         r"native_burn \[profiled_native.so\](;.*)? \d+$" % re.escape(str(PROGRAM)),
                         text, re.M), text
        return
    names = {frame["name"]: frame for frame in json.loads(text)["shared"]["frames"]}
    assert names["native_burn [profiled_native.so]"]["file"].endswith(".c")
    assert names["work"]["file"] == str(PROGRAM)


def impossible(names):
    """Why this stack, of functions outermost first, is impossible."""
    sides = {match.group(1) for match in (re.match("(?:py_)?(left|right)_", name)
                                          for name in names) if match}
    if len(sides) > 1:
        return "both sides"
    for start in ("", "py_"):
        numbers = [int(name.rpartition("_")[2]) for name in names
                   if re.match(start + "(left|right)_[0-9]$", name)]
        if numbers != list(range(len(numbers))):
            return "calls are missing"
    for caller, name in zip(names, names[1:]):
        if re.match("(left|right)_[1-9]$", name) and caller != name[:-1] + str(int(name[-1]) - 1):
            return "called by something else"
    return None


def in_stub(names):
    """In libffi's code for a callback, without unwind information."""
    return re.fullmatch(r"\[unwinding ended: no unwind information in .+\];"
                        r"(<code without a name>|jit_region_\d+)", ";".join(names[-2:]))


def check_churn(probing, pid, file):
    """Records churn; no stack of it may be impossible."""
    Recording(pid, "-C", "-d", "3600s", "-r", RATE, "-o", file).until_taken(file, SAMPLES)
    assert profiles.readable(json.loads(probing(file, "perf", "--json").out))
    collapsed = file.with_suffix(".collapsed")
    assert probing(file, "perf", "-o", collapsed).code == 0
    seen = stacks(collapsed)
    deep = 0
    for names in seen:
        if names == ["<unreadable>"]:
            continue
        assert in_stub(names) or not any(name.startswith("[") for name in names), names
        assert not impossible(names), (impossible(names), names)
        deep += any(re.search("left_[5-9]$", name) for name in names)
    assert deep
    support.report("perf --cc, %s: 0 of %d samples impossible, %d different stacks" % (
        file.stem, profiles.taken(file), len(seen)))


@pytest.mark.parametrize("interpreter", WITH_CTYPES, ids=repr)
def test_no_impossible_stacks(probing, tmp_path, interpreter, library):
    with support.Target(interpreter, PROGRAM, library) as target:
        assert target.line() == "ready"
        target.send(b"churn 100000\n")
        check_churn(probing, target.pid, tmp_path / ("churn on %s.profile" % interpreter))


def test_no_impossible_stacks_without_python(probing, tmp_path, program):
    with support.Program([program]) as target:
        assert target.line() == "ready"
        target.send(b"churn 100000\n")
        check_churn(probing, target.pid, tmp_path / "churn without Python.profile")


def test_threads_without_python(threads_library):
    """Each has its own stack, and all of its time."""
    with support.Target(NEWEST, PROGRAM, threads_library) as target:
        assert target.line() == "ready"
        target.send(b"threads 600\n")
        result = profile(target.pid, "--cc", "--duration", "%ds" % support.count(2, 20))
    assert len(result["threads"]) == 18 and profiles.readable(result)
    found = profiles.shares(result)
    assert found["native_thread"] > 98 and found["native_burn"] > 98
    assert not [row for row in result["functions"] if row["kind"] == "note"]


def test_idle_threads_cost_no_stops(probing, tmp_path, library):
    file = tmp_path / "idle.collapsed"
    with support.Target(NEWEST, PROGRAM, library) as target:
        assert target.line() == "ready"
        support.wait_for_rest(target.pid)
        result = profile(target.pid, "--cc", "--duration", "1s", "--mode", "wall")
        assert probing(target.pid, "perf", "-C", "-d", "500ms", "-m", "wall", "-o", file).code == 0
    assert result["cost"]["stops"] == 0
    rows = {row["func"]: row for row in result["functions"]}
    assert rows["Event.wait"]["kind"] == "python"
    assert rows["Event.wait"]["self_ns"] == 0 and rows["main"]["total_ns"] > 0
    outermost = {names[0] for names in stacks(file)}
    assert all(re.match(r"_start$|(__)?clone3?$|fun_", name) for name in outermost)


def test_deep_stacks(program):
    """More than is copied at first; later copies are as long as they must be."""
    with support.Program([program]) as target:
        assert target.line() == "ready"
        target.send(b"deep 3000\n")
        result = profile(target.pid, "--cc", "--duration", "1s")
    found = profiles.shares(result)
    assert found["main"] == found["native_deep"] == 100, found
    assert result["cost"]["unreadable"] == 0 and result["cost"]["again"] <= 3


def test_without_call_frame_information(tmp_path):
    """The stack begins with the reason."""
    bare = build(tmp_path, "bare", "-DPROGRAM", "-fno-asynchronous-unwind-tables",
                 "-fno-exceptions", "-fomit-frame-pointer", "-g0")
    with support.Program([bare]) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        result = profile(target.pid, "--cc", "--duration", "1s")
    found = profiles.shares(result)
    notes = {row["func"]: row for row in result["functions"] if row["kind"] == "note"}
    assert list(notes) == ["[unwinding ended: no unwind information in bare]"], notes
    assert found["native_burn"] > 90 and "main" not in found


def made(program, which, name=""):
    """Samples of code that the program makes and then runs."""
    with support.Program([program]) as target:
        assert target.line() == "ready"
        target.send(("made %d %s\n" % (which, name)).encode())
        assert target.line().startswith("made ")
        try:
            return profile(target.pid, "--cc", "--duration", "1s"), target.pid
        finally:
            if name:
                os.unlink("/tmp/perf-%d.map" % target.pid)


on_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for x86_64")


@on_x86_64
@pytest.mark.parametrize("which", [0, 1])
def test_made_code_that_is_known(program, which):
    """CPython's code for perf is no guess; the perf map has its name."""
    result, pid = made(program, which, "py::some:thing.py")
    rows = {row["func"]: row for row in result["functions"]}
    assert rows["py::some:thing.py"]["module"] == "/tmp/perf-%d.map" % pid
    assert rows["py::some:thing.py"]["total_ns"] == rows["main"]["total_ns"] == result["weight_ns"]
    assert not any(row["kind"] == "note" for row in result["functions"])


@on_x86_64
@pytest.mark.parametrize("interpreter", [each for each in WITH_CTYPES if each.version >= (3, 12)],
                         ids=repr)
def test_python_for_perf(interpreter, library):
    """Each call goes through code that Python makes, and is whole all the same."""
    env = {"PYTHONPERFSUPPORT": "1"}
    with support.Target(interpreter, PROGRAM, library, env=env) as target:
        assert target.line() == "ready"
        made_map = "/tmp/perf-%d.map" % target.pid
        target.send(b"go 600\n")
        try:
            result = profile(target.pid, "--cc", "--duration", "%ds" % support.count(1, 10))
            # The code may lie just behind the stack of a thread that sleeps.
            asleep = profile(target.pid, "--cc", "--mode", "wall", "--duration", "0.4s")
        finally:
            supported = os.path.exists(made_map)
            if supported:
                os.unlink(made_map)
    if not supported:
        pytest.skip("this build does not make code for perf")
    found = profiles.shares(result)
    for each in (result, asleep):
        assert not [row for row in each["functions"] if row["kind"] == "note"]
    assert found["_start"] > 99.9 and found["work"] > 95, found
    assert not any(row["func"].startswith("py::") for row in result["functions"])


@on_x86_64
def test_made_code_with_a_frame_pointer(program):
    """A guess says that it is one."""
    result, _ = made(program, 2)
    found = profiles.shares(result)
    notes = [row for row in result["functions"] if row["kind"] == "note"]
    assert [row["func"] for row in notes] == ["[callers by frame pointer, a guess]"]
    assert notes[0]["total_ns"] == result["weight_ns"] and found["main"] == 100


@on_x86_64
def test_made_code_without_a_way_back(program):
    result, _ = made(program, 3)
    found = profiles.shares(result)
    notes = {row["func"] for row in result["functions"] if row["kind"] == "note"}
    assert notes == {"[unwinding ended: no unwind information in code made at run time]"}
    assert found["native_burn"] == 100 and "main" not in found


def test_library_loaded_meanwhile(program, library):
    with support.Program([program]) as target:
        assert target.line() == "ready"
        recording = Recording(target.pid, "--json", "--cc", "--duration", "300s")
        recording.samples()
        target.send(b"load %d %s\n" % (support.count(4, 10), str(library).encode()))
        assert target.line(timeout=300) == "done"
        recording.interrupt()
        result = recording.result()
    modules = {row["module"] for row in result["functions"] if row["func"] == "native_short"}
    assert str(library) in modules
    rows = [row for row in result["functions"] if row["func"] == "load"]
    assert rows[0]["share"] is not None and rows[0]["total_ns"] > 0.5 * result["weight_ns"]


def test_target_ends(program):
    """Names are resolved after the target has ended."""
    with support.Program([program]) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        recording = Recording(target.pid, "--json", "--cc", "--duration", "300s")
        recording.samples()
        end = profiles.counted(target.pid) + 1e9
        while profiles.counted(target.pid) < end:
            pass
        target.kill()
        result = recording.result()
    assert result["ended"] == "the process ended"
    assert {"native_burn", "go", "main"} <= set(profiles.shares(result))
