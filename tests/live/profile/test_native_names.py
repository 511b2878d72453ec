# SPDX-License-Identifier: GPL-3.0-or-later
"""C functions without symbols: of stripped files, and of code that is made at run time."""
import json
import os
import platform
import re
import shutil
import sqlite3
import subprocess

import pytest

from debug_servers import http_files
import otlp_file
import pprof_file
import profiles
import support
from profiles import Recording, profile

PROGRAMS = support.HERE / "programs"
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
USAGE = 2


def compile_c(source, path, *options):
    subprocess.run(["gcc", "-O2", "-g", "-pthread", *options, "-o", path, source], check=True)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A program, and the same without symbols."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "whole").mkdir()
    # Names of other builds, which tests have asked for, are in the cache by their build-ids.
    whole = compile_c(PROGRAMS / "profiled_native.c", folder / "whole" / "native", "-DPROGRAM",
                      "-Wl,--build-id=0x" + os.urandom(20).hex(), "-ldl")
    subprocess.run(["strip", "-o", folder / "stripped", whole], check=True)
    return whole, folder / "stripped"


@pytest.fixture(scope="module")
def recorded(files, tmp_path_factory):
    """A recording of the one without."""
    file = tmp_path_factory.mktemp("recorded") / "run.profile"
    with support.Program([files[1]]) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        Recording(target.pid, "--cc", "-d", "3600s", "-o", file).until_taken(file, 100)
    return file


def addresses(file):
    lines = subprocess.run(["nm", file], check=True, text=True, stdout=subprocess.PIPE).stdout
    return {words[2]: int(words[0], 16) for words in map(str.split, lines.splitlines())
            if len(words) == 3}


def build_id(file):
    text = subprocess.run(["readelf", "-n", file], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return re.search("Build ID: ([0-9a-f]+)", text)[1]


def code_at(file, address):
    """16 bytes, by what its program headers say."""
    text = subprocess.run(["readelf", "-lW", file], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    for line in text.splitlines():
        if line.split()[:1] == ["LOAD"]:
            offset, start, _, size = (int(each, 16) for each in line.split()[1:5])
            if start <= address < start + size:
                return file.read_bytes()[address - start + offset:][:16]
    raise AssertionError("no such address")


def test_a_function_without_a_symbol_is_one_row(probing, files, recorded):
    """It has the name of where it begins, however many of its instructions ran."""
    found = json.loads(probing(recorded, "perf", "--json").out)
    # Its own time may all be in what it calls to read the clock.
    own = [row["func"] for row in found["functions"] if row["module"] == str(files[1])]
    burn = "fun_%x" % addresses(files[0])["native_burn"]
    assert own.count(burn) == 1, own
    assert profiles.shares(found)[burn] > 90
    assert not any(re.search(r"\+0x", row["func"]) for row in found["functions"])


def test_recordings_have_build_id_and_address(files, recorded):
    rows = sqlite3.connect(recorded).execute(
        "SELECT f.name, i.path, i.build_id, o.address, i.address, i.file_offset, i.size "
        "FROM origins o JOIN functions f USING (function) JOIN images i USING (image)").fetchall()
    start = addresses(files[0])["native_burn"]
    name, path, found, address, mapping, offset, size = next(
        row for row in rows if row[0] == "fun_%x" % start)
    assert (path, found, address) == (str(files[1]), build_id(files[0]), start)
    assert files[1].read_bytes()[address - mapping + offset:][:16] == code_at(files[0], start)
    assert mapping <= address < mapping + size


def test_symbolize(probing, files, recorded, tmp_path):
    named = tmp_path / "named.profile"
    result = probing(recorded, "symbolize", "--from", files[0].parent, "-o", named)
    assert result.code == 0, result
    # The C library may be without symbols here, and has no file there.
    assert re.match(r".*named.profile: [1-9]\d* of \d+ functions without a name have one now, "
                    r"from 1 file\n", result.out), result
    before, after = (json.loads(probing(each, "perf", "--json").out) for each in (recorded, named))
    assert before["weight_ns"] == after["weight_ns"]
    found = profiles.shares(after)
    assert found["native_burn"] > 90 and found["main"] > 99
    ours = {"fun_%x" % address for address in addresses(files[0]).values()}
    assert not any(row["func"] in ours for row in after["functions"]
                   if row["module"] == str(files[1])), after["functions"]


def test_symbolize_takes_names_of_the_same_build_only(probing, recorded, tmp_path):
    other, named = tmp_path / "other", tmp_path / "named.profile"
    other.mkdir()
    compile_c(PROGRAMS / "profiled_native.c", other / "stripped", "-DPROGRAM", "-O1", "-ldl")
    (other / "no ELF file").write_bytes(b"\x7fELF and nothing else")
    (other / "a circle").symlink_to(other)
    result = probing(recorded, "symbolize", "--from", other, "-o", named)
    assert result.code == 0 and re.search(r": 0 of \d+ functions", result.out), result


def test_symbolize_by_a_server(probing, files, recorded, tmp_path):
    """The first one has none; the second has the debug file, in the folders of debuginfod."""
    empty, full, named = tmp_path / "empty", tmp_path / "full", tmp_path / "named.profile"
    empty.mkdir()
    place = full / "buildid" / build_id(files[0])
    place.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", files[0], place / "debuginfo"], check=True)
    with http_files(empty) as (first, asked_first), http_files(full) as (second, asked):
        result = probing(recorded, "symbolize", "-o", named,
                         env={"DEBUGINFOD_URLS": "ima:enforcing %s %s/" % (first, second)})
    assert result.code == 0, result
    assert re.search(r": [1-9]\d* of \d+ functions without a name have one now, from 1 file", result.out), result
    wanted = "/buildid/%s/debuginfo" % build_id(files[0])
    assert wanted in asked_first and wanted in asked
    assert re.search(r"^asking %s/ for \d+ debug files?$" % second, result.err, re.M), result
    assert profiles.shares(json.loads(probing(named, "perf", "--json").out))["native_burn"] > 90


@pytest.mark.parametrize("options, says", [
    (["--from", "."], "-o FILE.profile"), (["-o", "x.profile"], "--from DIR"),
    (["--from", ".", "-o", "x.svg"], "-o FILE.profile")])
def test_symbolize_refuses(probing, recorded, options, says):
    result = probing(recorded, "symbolize", *options)
    assert result.code == USAGE and says in result.err


@pytest.mark.parametrize("ending, read", [
    ("pb.gz", pprof_file.Profile), ("otlp", lambda path: otlp_file.Profiles(path.read_bytes()))])
def test_viewers_get_mappings_and_addresses(probing, files, recorded, tmp_path, ending, read):
    """A reader finds the place in the file by the rule of profile.proto, and the file by its build-id."""
    written = tmp_path / ("run." + ending)
    assert probing(recorded, "perf", "-o", written).code == 0
    start, profile_ = addresses(files[0])["native_burn"], read(written)
    mapping, address = profile_.places["fun_%x" % start]
    assert mapping["build_id"] == build_id(files[0]) and mapping["path"] == str(files[1])
    assert mapping["start"] <= address < mapping["limit"] and not mapping.get("named")
    code = mapping["offset"] + address - mapping["start"]
    assert files[0].read_bytes()[code:code + 16] == code_at(files[0], start)


def test_firefox_gets_addresses_and_libraries(probing, files, recorded, tmp_path):
    written = tmp_path / "run.gecko.json"
    assert probing(recorded, "perf", "-o", written).code == 0
    data = json.loads(written.read_text())
    library = next(each for each in data["libs"] if each["path"] == str(files[1]))
    assert library["codeId"] == build_id(files[0]) and len(library["breakpadId"]) == 33
    address = "0x%x" % (library["start"] + addresses(files[0])["native_burn"])
    assert address in data["threads"][0]["stringTable"]


def test_by_library(probing, files, recorded, tmp_path):
    result = json.loads(probing(recorded, "perf", "--by-library", "--json").out)
    assert profiles.shares(result)["stripped"] > 99
    assert len(result["functions"]) <= 4, result["functions"]
    assert probing(recorded, "perf", "--by-library", "--lines").code == USAGE
    file = tmp_path / "run.collapsed"
    assert probing(recorded, "perf", "--by-library", "-o", file).code == 0
    assert not re.search(r"stripped;stripped", file.read_text())


def made(tmp_path, *options):
    """A recording of code that a program made, and whether it has registered that."""
    (tmp_path / "made.c").write_text(
        "static volatile unsigned long sum;\n"
        "void made_at_run_time(void) { unsigned long all = 0;\n"
        "    for (int i = 0; i < 1000000; i++) __asm__ volatile(\"add %1, %0\" : \"+r\"(all) : \"r\"(1ul)); }\n")
    subprocess.run(["gcc", "-O1", "-c", "-fno-asynchronous-unwind-tables", "-fomit-frame-pointer",
                    "-o", tmp_path / "made.o", tmp_path / "made.c"], check=True)
    program = compile_c(PROGRAMS / "jit_registered.c", tmp_path / "program")
    with support.Program([program, tmp_path / "made.o", *options]) as target:
        assert target.line() == "ready"
        return profile(target.pid, "--cc", "--duration", "1s")


def test_code_that_is_registered_with_gdb(tmp_path):
    result = made(tmp_path)
    rows = {row["func"]: row for row in result["functions"]}
    assert rows["made_at_run_time"]["module"] == "JIT"
    assert profiles.shares(result)["made_at_run_time"] > 95


def test_nonsense_that_is_registered(tmp_path):
    """Code without a name is one row for each memory that it is in, and so is the reason."""
    result = made(tmp_path, "nonsense")
    rows = {row["func"]: row for row in result["functions"]}
    assert rows["jit_region_1"]["module"] is None and profiles.shares(result)["jit_region_1"] > 95
    notes = [name for name, row in rows.items() if row["kind"] == "note"]
    assert notes == ["[unwinding ended: no unwind information in code made at run time]"], notes


def test_files_without_build_id(probing, tmp_path):
    """Nothing can tell whether another file is the same: it is said, and nothing is guessed."""
    whole = compile_c(PROGRAMS / "profiled_native.c", tmp_path / "whole", "-DPROGRAM",
                      "-Wl,--build-id=none", "-ldl")
    stripped, file = tmp_path / "stripped", tmp_path / "run.profile"
    subprocess.run(["strip", "-o", stripped, whole], check=True)
    with support.Program([stripped]) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        profile(target.pid, "--cc", "--duration", "1s", "-o", file)
    result = probing(file, "symbolize", "--from", tmp_path, "-o", tmp_path / "named.profile")
    assert result.code == 0 and re.search(r": 0 of \d+ .*; the files of \d+ have no build-id\n",
                                          result.out), result


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for x86_64")
@pytest.mark.parametrize("mode, order, named", [
    ("644", "stay", True), ("644", "move", True), ("644", "decoy", True), ("644", "fork", False), ("666", "stay", False)],
    ids=["load", "move", "beside one that is none", "of its parent", "written by anybody"])
def test_names_of_a_jitdump(tmp_path, mode, order, named):
    """Code is named by the dump that the process has mapped, which nobody else may write to."""
    with support.Target(NEWEST, PROGRAMS / "jitdump.py", tmp_path, mode) as target:
        assert target.line() == "ready"
        target.send(order.encode() + b"\n")
        pid = int(target.line()) if order == "fork" else target.pid
        # What it has not reached yet, or had no time for, has no name.
        result = profiles.repeated(lambda: profile(pid, "--cc", "-d", "500ms"), lambda found: any(
            row["func"] in ("made_loop", "jit_region_1") for row in found["functions"]))
    rows = {row["func"]: row for row in result["functions"]}
    assert ("made_loop" in rows) == named, rows.keys()
    assert named or "jit_region_1" in rows, rows.keys()
    if named:
        assert rows["made_loop"]["module"] == "%s/jit-%d.dump" % (tmp_path, target.pid)


# By how a compiler mangles them: legacy names lack the types of generics.
SHORT_EAT = {"<Parser<T> as Eat>::eat", "<Parser<Option<…>> as Eat>::eat"}
SHORT_DRIVE = {"work::drive", "work::drive::<rust_work::{closure#0}>"}


@pytest.mark.skipif(not shutil.which("rustc"), reason="rustc is not installed")
@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_short_names_of_rust(mangling, tmp_path):
    """Without hashes, the modules of types, and arguments of arguments; with the library."""
    library, program = tmp_path / "work.so", tmp_path / "use.py"
    options = [] if mangling == "legacy" else ["-C", "symbol-mangling-version=v0"]
    # Newer compilers have v0 as their default, and legacy only as an unstable option.
    subprocess.run(["rustc", "-O", "-C", "debuginfo=0", "--crate-type", "cdylib", "--crate-name", "work", *options,
                    "-o", library, PROGRAMS / "rust_work.rs"], check=True, capture_output=True)
    program.write_text("import ctypes, threading\n"
                       "work = ctypes.CDLL(%r).rust_work\nwork.argtypes = [ctypes.c_uint64]\n"
                       "print('ready', flush=True)\nwhile True: work(1 << 20)\n" % str(library))
    with support.Target(NEWEST, program) as target:
        assert target.line() == "ready"
        result = profiles.repeated(lambda: profile(target.pid, "--cc", "-d", "1s"), lambda found: all(
            any(word in row["func"] for row in found["functions"]) for word in ("drive", "::eat")))
    names = {row["func"] for row in result["functions"] if row["module"] == str(library)}
    assert names & SHORT_EAT and names & SHORT_DRIVE, names
    assert not [name for name in names if re.search("h[0-9a-f]{16}", name)], names
