# SPDX-License-Identifier: GPL-3.0-or-later
"""perf --async: asyncio's tasks and their waiters, compared with the programs' own measurements."""
import json
import math
import os
import re
import sqlite3

import pytest

import profiles
import support

OK, FAILED, USAGE = range(3)
LOOP = "run_until_complete;"


def record(process, file, *options, seconds=1.5):
    """The program's own data."""
    recording = profiles.Recording(process.pid, "--async", "--rate", 300, "-o", file, *options)
    recording.samples()
    process.send(b"go %r\n" % seconds)
    spent = json.loads(process.line())
    recording.interrupt()
    code, _, err = recording.end()
    assert code == OK, err
    return spent


def stacks(probing, file, *options):
    """Seconds of each stack, and of how many samples that is."""
    written = str(file) + ".collapsed"
    assert probing(file, "perf", "-o", written, *options).code == OK
    found = {}
    with open(written, encoding="utf-8") as lines:
        for line in lines:
            names, _, weight = line.rstrip("\n").rpartition(" ")
            names = re.sub(r";TaskGroup\.\w+ [^;]*", "", names)  # one or two, by the version
            names = ";".join(re.sub(r" [([].*[])]$", "", name) if not name.startswith("[") else name
                             for name in names.split(";"))
            found[names] = found.get(names, 0) + int(weight) / 1e6
    os.unlink(written)
    return found, json.loads(probing(file, "perf", "--json", *options).out)["independent_samples"]


def agrees(found, samples, spent):
    """Each chain has its share, as exactly as that many samples allow."""
    whole, own = sum(found.values()), sum(spent.values())
    for chain, seconds in spent.items():
        share, true = found.get(chain, 0) / whole, seconds / own
        off = 4 * math.sqrt(true * (1 - true) / samples) + 0.02
        assert abs(share - true) < off, (chain, share, true, samples, found)


def told(target, probing, file, *options, **keywords):
    """Stacks with --async, the number of samples, the program's own data; with enough to compare, which
    takes longer on a busy machine."""
    process = target("awaited.py", **keywords)
    for seconds in (1.5, 5, 15):
        spent = record(process, file, *options, seconds=seconds)
        found, samples = stacks(probing, file, "--async")
        if samples > 50:
            break
    assert samples > 50, found
    return found, samples, spent


@pytest.mark.parametrize("interpreter", [i for i in support.INTERPRETERS if i.version >= (3, 7)], ids=repr)
def test_truth(target, interpreter, probing, tmp_path):
    file = tmp_path / "run.profile"
    found, samples, spent = told(target, probing, file, interpreter=interpreter)
    agrees(found, samples, spent)
    # The other view of the same recording has the event loop, and none of the tasks.
    plain, _ = stacks(probing, file)
    assert abs(sum(plain.values()) - sum(found.values())) < 0.001 * sum(plain.values())
    assert not any("[task" in names for names in plain), plain
    worked = sum(seconds for names, seconds in plain.items() if names.endswith(";burn"))
    assert worked > 0.9 * sum(plain.values())
    assert all("run_until_complete;" in names.replace("BaseEventLoop.", "")
               for names in plain if names.endswith(";burn")), plain


def test_c_frames(target, probing, tmp_path):
    file = tmp_path / "run.profile"

    def python(found):
        """Without the C frames below burn()."""
        merged = {}
        for names, seconds in found.items():
            names = re.sub(r";burn;.*", ";burn", names)
            merged[names] = merged.get(names, 0) + seconds
        return merged

    found, samples, spent = told(target, probing, file, "--cc")
    known = {names for names in python(found) if names.endswith(";burn")}
    kept = {names: ";".join(each for each in names.split(";")
                            if each in ("main", "direct", "gathered", "waited", "timed", "grouped", "worker",
                                        "inner", "burn", "wait", "_wait", "wait_for") or each.startswith("[task")) for names in known}
    merged = {}
    for names, seconds in python(found).items():
        merged[kept.get(names, names)] = merged.get(kept.get(names, names), 0) + seconds
    agrees(merged, samples, spent)


def test_formats(target, probing, tmp_path):
    process = target("awaited.py")
    file = tmp_path / "run.profile"
    record(process, file, seconds=1)
    table = probing(file, "perf", "--async")
    assert table.code == OK and "[task direct]" in table.out and LOOP not in table.out
    for ending in ("html", "svg", "speedscope.json", "pb.gz", "trace.json", "gecko.json", "otlp"):
        made = tmp_path / ("run." + ending)
        assert probing(file, "perf", "--async", "--no-source", "-o", made).code == OK and made.stat().st_size
    assert b"[task direct]" in (tmp_path / "run.html").read_bytes()
    assert b"[task direct]" not in _page(probing, file, tmp_path)
    names = probing(file, "query", "-f", "json", "SELECT DISTINCT func FROM profile.functions WHERE kind = 'note'")
    assert names.code == OK and "[task" not in names.out, names
    with sqlite3.connect(str(file)) as database:
        assert database.execute("SELECT tasks FROM recording").fetchone() == (1,)
        assert ("[task direct]",) in database.execute("SELECT name FROM functions WHERE kind = 'task'").fetchall()


def _page(probing, file, folder):
    page = folder / "plain.html"
    assert probing(file, "flamegraph", "--no-source", "-o", page).code == OK
    return page.read_bytes()


def test_directly(target, probing):
    """Without a file, and of a process that has no tasks."""
    process = target("awaited.py")
    recording = profiles.Recording(process.pid, "--async", "--json")
    recording.samples()
    process.send(b"go 1.0\n")
    process.line()
    recording.interrupt()
    assert "[task direct]" in {row["func"] for row in recording.result()["functions"]}
    other = target("profiled.py", 1)
    other.send(b"go 600\n")
    result = profiles.profile(other.pid, "--async", "-d", "1s")
    assert "burn" in profiles.shares(result)


def test_a_recording_without(target, probing, tmp_path):
    process = target("profiled.py", 1)
    process.send(b"go 600\n")
    file = tmp_path / "run.profile"
    assert probing(process.pid, "perf", "-d", "0.5s", "-o", file).code == OK
    refused = probing(file, "perf", "--async")
    assert refused.code == USAGE and "made without the tasks of asyncio" in refused.err, refused
    refused = probing(process.pid, "perf", "--async", "--torch")
    assert refused.code == USAGE, refused
