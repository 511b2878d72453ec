# SPDX-License-Identifier: GPL-3.0-or-later
"""native.modules and native.symbols agree with /proc, readelf and gdb."""

import collections
import re
import subprocess

import pytest

import environment
import tables
from conftest import PROGRAMS
from support import Program, wait_for_all_asleep

pytestmark = pytest.mark.every_interpreter  # of the few that tables.py chooses

Asleep = collections.namedtuple("Asleep", "pid targets")


@pytest.fixture(scope="module", params=tables.chosen_interpreters(), ids=repr)
def asleep(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("native")
    with Program([request.param.exe, PROGRAMS / "recorded.py"], env=request.param.env) as program:
        program.line()
        wait_for_all_asleep(program.pid, 4)
        yield Asleep(program.pid, {"process": program.pid,
                                   "core": tables.core_of(program.pid, folder),
                                   "snapshot": tables.snapshot_of(program.pid, folder)})


@pytest.fixture(params=["process", "snapshot", "core"])
def kind(request):
    return request.param


def mapped_code(pid):
    """{path: (lowest, highest address)} of all files that code is mapped from."""
    found = {}
    with open("/proc/%d/maps" % pid) as file:
        lines = [line.split(None, 5) for line in file]
    code = {line[5].rstrip("\n") for line in lines if "x" in line[1] and len(line) > 5
            and line[5].startswith("/")}
    for line in lines:
        path = line[5].rstrip("\n") if len(line) > 5 else ""
        if path in code:
            start, end = (int(part, 16) for part in line[0].split("-"))
            low, high = found.get(path, (start, end))
            found[path] = min(low, start), max(high, end)
    return found


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL).stdout.decode()
    match = re.search(r"Build ID: (\w+)", notes)
    return match and match[1]


def test_modules(asleep, kind):
    rows = tables.query(asleep.targets[kind], "SELECT * FROM native.modules")
    known = {row["path"]: row for row in rows}
    code = mapped_code(asleep.pid)
    assert set(code) <= set(known) and len(code) >= 3
    if kind != "core":  # there, merely mapped files may count as well
        assert set(known) - set(code) == {"[vdso]"}
    for path, (start, end) in code.items():
        row = known[path]
        # Memory that the program only reserves may extend beyond the file's part.
        assert row["start"] == start and row["end"] >= end and row["name"] == path.split("/")[-1]
        assert row["size"] == row["end"] - row["start"] and row["deleted"] == 0
        assert row["build_id"] == build_id(path)


def nm(path):
    """The symbols of a file by binutils' nm: {(name, address)}."""
    listing = subprocess.run(["nm", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not listing.stdout:
        listing = subprocess.run(["nm", "-D", path], stdout=subprocess.PIPE, check=True)
    found = set()
    for line in listing.stdout.decode().splitlines():
        match = re.match(r"([0-9a-f]+) ([a-zA-Z]) ([^@]+)", line)
        if match and match[2] not in "aAN":
            found.add((match[3], int(match[1], 16)))
    return found


def test_symbols_are_those_of_nm(asleep):
    """Of the file that contains the interpreter, without nm's thread-local symbols."""
    where = tables.query(asleep.pid, "SELECT DISTINCT module FROM native.symbols "
                                     "WHERE name = 'Py_BytesMain'").one()["module"]
    rows = tables.query(asleep.pid, "SELECT s.name, offset, address - bias AS there, kind "
                                    "FROM native.symbols s JOIN native.modules m "
                                    "ON m.path = s.module WHERE module = '%s'" % where)
    assert {row["offset"] - row["there"] for row in rows} == {0}
    ours = {(row["name"].split("@")[0], row["offset"]) for row in rows}
    theirs = nm(where)
    assert len(ours & theirs) > 1000
    assert len(theirs - ours) <= len(theirs) / 100, sorted(theirs - ours)[:20]
    kinds = {row["kind"] for row in rows}
    assert {"function", "object"} <= kinds <= {"function", "object", "ifunc", "label"}


def test_symbols_are_where_gdb_sees_them(asleep):
    names = ["Py_BytesMain", "PyObject_Repr", "PyExc_ValueError"]
    rows = tables.query(asleep.pid, "SELECT name, address, kind FROM native.symbols WHERE name IN "
                                    "('Py_BytesMain', 'PyObject_Repr', 'PyExc_ValueError')")
    done = subprocess.run(
        ["gdb", "-p", str(asleep.pid), "-batch", "-nx"] +
        [word for name in names for word in ("-ex", "info address %s" % name)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    seen = dict(re.findall(r'Symbol "(\w+)" is .*?(0x[0-9a-f]+)',
                           done.stdout.decode()))
    assert set(seen) == set(names)
    assert {row["name"]: row["address"] for row in rows} == {
        name: int(address, 16) for name, address in seen.items()}


def test_keys_give_what_a_filter_gives(asleep):
    """Rows selected by name or module equal those filtered out of all."""
    everything = tables.query(asleep.pid, "SELECT * FROM native.symbols WHERE +name = 'Py_GetVersion'")
    assert len(everything) == 1
    assert tables.query(asleep.pid, "SELECT * FROM native.symbols WHERE name = 'Py_GetVersion'") == (
        everything)
    of = "SELECT count(*) AS n FROM native.symbols"
    module = tables.query(asleep.pid, of + " WHERE module LIKE '%/libc.so.6'").one()
    assert module["n"] > 2000
    assert tables.query(asleep.pid, of + "('libc.so.6')").one() == module


def test_symbols_of_a_snapshot(asleep):
    """A snapshot has no files: it says so, once for all of them."""
    answer = tables.query(asleep.targets["snapshot"], "SELECT * FROM native.symbols")
    assert answer == [] and len(answer.notes) == 2
    assert re.match(r"native.symbols: /.*: ", answer.notes[0])
    assert re.match(r"native.symbols: \d+ files are not available", answer.notes[1])
    name = "SELECT address FROM native.symbols WHERE name = 'Py_GetVersion'"
    assert tables.query(asleep.targets["core"], name) == tables.query(asleep.pid, name)


def test_demangled(tmp_path, newest):
    environment.need("g++")
    source = tmp_path / "shapes.cpp"
    source.write_text("namespace shapes { double area(double side, int) { return side * side; } }\n"
                      'extern "C" int plain;\nint plain = 7;\nstatic int hidden(void)'
                      " { return 1; }\nint (*use)(void) = hidden;\n")
    library = tmp_path / "libshapes.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
    script = tmp_path / "load.py"
    script.write_text("import ctypes, sys\nx = ctypes.CDLL(%r)\nprint('ready', flush=True)\n"
                      "sys.stdin.read()\n" % str(library))
    with Program([newest.exe, script], env=newest.env) as program:
        program.line()
        rows = tables.query(program.pid, "SELECT * FROM native.symbols('libshapes.so')")
        rows = {row["name"]: row for row in rows}
    area = rows["_ZN6shapes4areaEdi"]
    assert area["demangled"] == "shapes::area(double, int)" and area["binding"] == "global"
    assert (rows["plain"]["kind"], rows["plain"]["size"]) == ("object", 4)
    assert rows["plain"]["demangled"] is None
    hidden = rows["_ZL6hiddenv"]
    assert (hidden["kind"], hidden["binding"], hidden["of"] if "of" in hidden else None) == (
        "function", "local", None)
