# SPDX-License-Identifier: GPL-3.0-or-later
"""Files for viewers, read as their viewers read them, of a process with hostile names and others."""
import contextlib
import csv
import gzip
import io
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import xml.etree.ElementTree

import pytest

import otlp_file
import pprof_file
import profiles
import support
import trace_file

OK, FAILED, USAGE = range(3)
HOSTILE = support.HERE / "programs" / "hostile_names.py"
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
SVG = "{http://www.w3.org/2000/svg}"


def shown(text):
    """A name as it is where it may not act on a terminal."""
    return re.sub("[\x00-\x1f\x7f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", lambda match: {
        "\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(match[0]) or (
            r"\x%02x" if ord(match[0]) < 128 else r"\u%04x") % ord(match[0]), text)


def exact(text):
    """A name in JSON: half of a surrogate pair is no character, and is shown as text; so is NUL, which
    would end a text of C."""
    return re.sub("[\ud800-\udfff]", lambda match: r"\u%04x" % ord(match[0]),
                  text.replace("\0", r"\x00"))


# Each gives [(names of a stack, outermost first, weight in ns)].

def read_collapsed(file):
    for line in file.read_text().split("\n")[:-1]:
        stack, _, weight = line.rpartition(" ")
        frames = [re.fullmatch(r"(.*) \(/.*?\)|(<.*>)", frame) for frame in stack.split(";")]
        yield [(frame[1] if frame[2] is None else frame[2]).replace(r"\x3b", ";")
               .replace(r"\x0d", r"\r") for frame in frames], 1000 * int(weight)


def read_speedscope(file):
    data = json.loads(file.read_text())
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [frame["name"] for frame in data["shared"]["frames"]]
    assert all(isinstance(frame.get("file", ""), str) for frame in data["shared"]["frames"])
    for each in data["profiles"]:
        assert each["type"] == "sampled" and each["unit"] == "nanoseconds"
        assert len(each["samples"]) == len(each["weights"])
        assert sum(each["weights"]) == each["endValue"] - each["startValue"]
        for sample, weight in zip(each["samples"], each["weights"]):
            yield [frames[number] for number in sample], weight


def read_pprof(file):
    profile = pprof_file.Profile(file)
    assert profile.types == ["samples", "cpu", "wall", "runqueue"]
    for stack, values, labels in profile.samples:
        assert labels["thread"] and labels["thread_id"] and labels["state"]
        if values[profile.default]:
            yield [name for name, _, _ in stack], values[profile.default]


def read_otlp(file):
    data = otlp_file.Profiles(file.read_bytes())
    [(_, scope, each)] = data.resources
    assert scope == b"probing" and {kind for kind in data.kinds.values()} <= {"cpython", None}
    assert sorted(profile.type for profile in each) == [
        ("cpu", "nanoseconds"), ("runqueue", "nanoseconds"), ("samples", "count"), ("wall", "nanoseconds")]
    for stack, weight, attributes in each[0].samples:
        assert attributes["thread.id"] and attributes["thread.name"] and attributes["thread.state"]
        yield [name for name, _, _ in stack], weight


def read_trace(file):
    """Calls are put together again, from slices that lie inside of each other."""
    for slices in trace_file.read(file).slices.values():
        stack, inside = [], {}
        for begin, end, name, category in slices:
            if category == "state":
                continue
            while stack and stack[-1][1] <= begin:
                yield ended(stack, inside)
            if stack:
                inside[id(stack[-1])] = inside.get(id(stack[-1]), 0) + end - begin
            stack.append([begin, end, name])
        while stack:
            yield ended(stack, inside)


def ended(stack, inside):
    names = [name for _, _, name in stack]
    last = stack.pop()
    return names, last[1] - last[0] - inside.pop(id(last), 0)


def read_gecko(file):
    data = json.loads(file.read_text())
    meta = data["meta"]
    assert meta["version"] == 31 and meta["processType"] == 0 and "preprocessed" not in str(meta)
    for thread in data["threads"]:
        for table in ("samples", "markers", "frameTable", "stackTable"):
            columns = thread[table]["schema"]
            assert sorted(columns.values()) == list(range(len(columns)))
            assert all(len(row) == len(columns) for row in thread[table]["data"])
        strings, rows = thread["stringTable"], thread["frameTable"]["data"]
        assert all(row[0] < len(strings) and row[6] < len(meta["categories"]) for row in rows)
        stacks = []
        for number, (prefix, frame) in enumerate(thread["stackTable"]["data"]):
            assert prefix is None or prefix < number
            label = re.fullmatch(r"(.*) \(/.*?\)|(<.*>)", strings[rows[frame][0]], re.S)
            name = label[1] if label[2] is None else label[2]
            stacks.append((stacks[prefix] if prefix is not None else []) + [name])
        times = [row[1] for row in thread["samples"]["data"]]
        assert times == sorted(times)
        for stack, *_ in thread["samples"]["data"]:
            yield stacks[stack], meta["interval"] * 1e6


def read_svg(file):
    """A box lies on that of its caller."""
    root = xml.etree.ElementTree.parse(file).getroot()
    assert not list(root.iter(SVG + "script")) and root.tag == SVG + "svg"
    boxes = []
    for group in root.iter(SVG + "g"):
        title, box = group.find(SVG + "title").text, group.find(SVG + "rect")
        label = re.match(r"(.*) \(/.*\)\n|(<.*>)\n", title)
        boxes.append((-float(box.get("y")), float(box.get("x")), float(box.get("width")),
                      label[1] if label[2] is None else label[2]))
    boxes.sort()
    stacks = {}
    for y, x, width, name in boxes:
        below = next((stack for (by, bx, bw), stack in stacks.items()
                      if by == y - 18 and bx < x + width / 2 < bx + bw), [])
        stacks[y, x, width] = below + [name]
    for y, x, width in stacks:
        above = sum(w for by, bx, w in stacks if by == y + 18 and x < bx + w / 2 < x + width)
        yield stacks[y, x, width], (width - above) * 1e6


READERS = {
    "collapsed": (read_collapsed, shown), "speedscope.json": (read_speedscope, exact),
    "pb.gz": (read_pprof, shown), "trace.json": (read_trace, exact),
    "gecko.json": (read_gecko, exact), "svg": (read_svg, shown), "otlp": (read_otlp, shown),
}
XML = {"\ufffe\uffff": r"\ufffe\uffff"}  # no characters to XML


@pytest.fixture(scope="module")
def hostile():
    with support.Target(NEWEST, HOSTILE) as target:
        yield target, json.loads(target.line())


def recorded(probing, target, file, *options):
    result = profiles.repeated(lambda: probing(target.pid, "perf", "-d", "300ms", "-o", file, *options),
                               lambda found: profiles.has_samples(found.out))
    assert result.code == OK and not result.err, result
    return file


@pytest.mark.parametrize("extension", READERS)
def test_hostile_names(probing, hostile, tmp_path, extension):
    target, names = hostile
    file = recorded(probing, target, tmp_path / ("run." + extension))
    read, escaped = READERS[extension]
    if extension not in ("pb.gz", "otlp"):
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", file.read_bytes())
        assert not re.search(rb"\xed[\xa0-\xbf]|\xe2\x80[\xa8-\xae]|</script>x", file.read_bytes())
        file.read_bytes().decode("utf-8")
    expected = [XML.get(name, escaped(name)) if extension == "svg" else escaped(name)
                for name in ["<module>", "main", *names]]
    stacks = [stack for stack, weight in read(file) if weight > 0]
    assert expected in stacks, stacks[-1]
    # Nothing but callers of it, and moments without Python.
    assert all(stack == expected[:len(stack)] or stack == ["<not in Python>"] for stack in stacks)


@pytest.fixture(scope="module")
def working():
    with support.Target(NEWEST, profiles.PROGRAM, 2) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        yield target


def recorded_with_report(probing, target, file, *options):
    result = probing(target.pid, "perf", "-d", "1s", "-r", 500, "--json", "-o", file, *options)
    assert result.code == OK and not result.err, result
    return json.loads(result.out)


@pytest.mark.parametrize("mode", ["cpu", "wall"])
@pytest.mark.parametrize("extension", READERS)
def test_weights(probing, working, tmp_path, extension, mode):
    """Each function has the same weight in the file and in the table."""
    file = tmp_path / ("run." + extension)
    report = recorded_with_report(probing, working, file, "--mode", mode)
    weights = {}
    for stack, weight in READERS[extension][0](file):
        for name in {*stack}:
            weights[name] = weights.get(name, 0) + weight
    unit = 1 if extension != "svg" else report["functions"][0]["total_ns"] / weights[
        report["functions"][0]["func"]]
    for row in report["functions"]:
        if row["func"] not in ("burn", "short", "long", "main", "Condition.wait"):
            continue
        if (extension, mode) == ("trace.json", "cpu"):  # its calls are as long as they took
            assert row["total_ns"] == 0 or weights[row["func"]] > 0
        else:
            assert abs(weights[row["func"]] * unit - row["total_ns"]) < 0.02 * report[
                "weight_ns"], row


def test_trace_of_several_processes(probing, tmp_path):
    """Calls, states and names of each thread, in a form that no viewer drops anything of."""
    file, script = tmp_path / "run.trace.json", tmp_path / "of_the_trace.py"
    script.write_bytes(profiles.PROGRAM.read_bytes())
    with support.Target(NEWEST, script, 1) as one, support.Target(NEWEST, script, 1) as two:
        for target in one, two:
            assert target.line() == "ready"
            target.send(b"go 600\n")
        done = probing("/of_the_trace/", "perf", "--all", "-m", "wall", "-d", "1s", "-o", file)
    assert done.code == OK and not done.err, done
    trace = trace_file.read(file)
    pids = {one.pid, two.pid}
    assert {pid for kind, pid, _ in trace.names if kind == "process_name"} == pids
    for wanted in pids:
        assert {name for (kind, pid, _), name in trace.names.items() if (kind, pid) == ("thread_name", wanted)} == {
            "MainThread", "idle-0"}
    assert {"python", "state"} <= {category for slices in trace.slices.values() for *_, category in slices}


def test_otlp_of_threads_of_one_of_several_processes(probing, tmp_path):
    """A process none of whose threads was asked for is not told of."""
    file, script = tmp_path / "run.profile", tmp_path / "of_the_otlp.py"
    script.write_bytes(profiles.PROGRAM.read_bytes())
    with support.Target(NEWEST, script, 1) as one, support.Target(NEWEST, script, 2) as two:
        for target in one, two:
            assert target.line() == "ready"
        done = probing("/of_the_otlp/", "perf", "--all", "-m", "wall", "-d", "500ms", "-o", file)
    assert done.code == OK and not done.err, done
    for more, pids in ([], [one.pid, two.pid]), (["--threads", "idle-1"], [two.pid]):
        assert probing(file, "perf", "-m", "wall", *more, "-o", tmp_path / "run.otlp").code == OK
        found = otlp_file.Profiles((tmp_path / "run.otlp").read_bytes()).resources
        assert sorted(resource["process.pid"] for resource, _, _ in found) == sorted(pids)


def test_times_that_cannot_be(probing, working, tmp_path):
    """A recording may say anything of when it began and of its rate."""
    file = recorded(probing, working, tmp_path / "run.profile")
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE recording SET started = 1e12, rate = 1e-300")
    for name in "run.otlp", "run.pb.gz":
        assert probing(file, "perf", "-o", tmp_path / name).code == OK
    [(_, _, each)] = otlp_file.Profiles((tmp_path / "run.otlp").read_bytes()).resources
    assert {(profile.started, profile.period) for profile in each} == {(0, 0)}
    sent = pprof_file.fields(gzip.decompress((tmp_path / "run.pb.gz").read_bytes()))
    assert not {number for number, _ in sent} & {9, 12}, "its time and period"


def slice_of(name, ts, dur, **more):
    return {"ph": "X", "name": name, "cat": "python", "pid": 1, "tid": 2, "ts": ts, "dur": dur, **more}


@pytest.mark.parametrize("says, events", [
    ("overlap", [slice_of("a", 0, 10), slice_of("b", 5, 10)]),
    ("overlap", [slice_of("inner", 0, 5), slice_of("outer", 0, 10)]),
    ("go back", [slice_of("a", 10, 5), slice_of("b", 0, 5)]),
    ("dur", [{key: value for key, value in slice_of("a", 0, 1).items() if key != "dur"}]),
    ("ts", [slice_of("a", "0", 1)]), ("times", [slice_of("a", 0, -1)]),
    ("phase", [slice_of("a", 0, 1, ph="B")]), ("nothing inside", [slice_of("s", 0, 9, cat="state"), slice_of("a", 1, 1)]),
    ("without a name", [slice_of("a", 0, 1, tid=3)])])
def test_bad_traces_are_told(says, events):
    """Our stand-in for a viewer refuses traces that it would not show."""
    named = [{"ph": "M", "name": kind, "pid": 1, "tid": 2, "args": {"name": "x"}} for kind in trace_file.NAMES]
    good = {"displayTimeUnit": "ms", "otherData": {}, "traceEvents": named + [slice_of("a", 0, 10), slice_of("b", 5, 5)]}
    assert len(trace_file.Trace(good).slices[1, 2]) == 2
    with pytest.raises(trace_file.Wrong) as told:
        trace_file.Trace({**good, "traceEvents": named + events})
    assert says in str(told.value)


def test_csv(probing, working, tmp_path):
    """Written by SQL: the statement named by an error has the table's content."""
    file = tmp_path / "run.profile"
    report = recorded_with_report(probing, working, file)
    refused = probing(file, "perf", "-o", tmp_path / "run.csv")
    assert refused.code == USAGE and not (tmp_path / "run.csv").exists(), refused
    named = probing(file, "perf", "-f", "csv", "-o", tmp_path / "run.table")
    words = shlex.split(re.search(r"'probing (FILE.profile .*)'$", refused.err, re.M)[1])
    assert named.code == USAGE and named.err.splitlines()[-1] == refused.err.splitlines()[-1]
    rows = list(csv.DictReader(io.StringIO(probing(file, *words[1:]).out)))
    rows = [row for row in rows if float(row["total_cpu_ms"]) > 0]
    assert len(rows) == len(report["functions"])
    told = sorted((row["func"], row["file"] or "", row["self_ns"]) for row in report["functions"])
    for row, (function, where, spent) in zip(sorted(rows, key=lambda row: (
            row["qualname"], row["file"], float(row["self_cpu_ms"]))), told):
        assert (row["qualname"], row["file"]) == (function, where)
        assert abs(float(row["self_cpu_ms"]) * 1e6 - spent) < 1


@pytest.mark.parametrize("options, name, says", [
    (["--format", "svg"], "run.anything", b"<?xml"), (["-f", "pprof"], "run.svg", b"\x1f\x8b")])
def test_format_by_name(probing, working, tmp_path, options, name, says):
    assert recorded(probing, working, tmp_path / name, *options).read_bytes().startswith(says)


@pytest.mark.parametrize("command", ["flamegraph", "flame", "fg"])
def test_flamegraph(probing, working, tmp_path, command):
    """Without a name for it, the file is where the command runs, and only the user can read it."""
    result = probing(working.pid, command, "-d", "200ms", cwd=tmp_path)
    assert result.code == OK and not result.err, result
    name = re.match(r"(probing-%d-\d{8}-\d{6}\.html): " % working.pid, result.out)[1]
    assert (tmp_path / name).read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    other = probing(working.pid, command, "-d", "200ms", "-f", "svg", cwd=tmp_path)
    assert re.match(r"probing-%d-[\d-]+\.svg: " % working.pid, other.out), other
    named = probing(working.pid, command, "-d", "200ms", "-o", tmp_path / "x.txt", "--json")
    assert named.code == OK and json.loads(named.out)["pid"] == working.pid
    assert (tmp_path / "x.txt").exists()


@pytest.mark.parametrize("options, says", [
    (["--format", "svg"], "'-o FILE'"), (["--format", "jpeg", "-o", "x"], "collapsed, speedscope")])
def test_format_usage(probing, options, says):
    result = probing("1", "perf", *options)
    assert result.code == USAGE and says in result.err


@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed")
def test_pprof_itself(probing, working, tmp_path):
    file = recorded(probing, working, tmp_path / "run.pb.gz")
    text = subprocess.run(["go", "tool", "pprof", "-top", file], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    assert "Type: cpu" in text and re.search(r"[0-9.]+[mu]?s .* burn$", text, re.M), text
