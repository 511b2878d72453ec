# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of live processes and of cores: they replay to the same output, on a machine without anything
else, and redacted ones show no values."""
import json
import re
import shutil
import struct
import subprocess

import pytest

import environment
import support
from bare import Bare
from conftest import PROGRAMS

HEADER = 88  # bytes before the compressed body, as docs/snapshot-format.md says
EVERYTHING = ["debug", "--dump", "--locals", "--native", "--source"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return Bare(tmp_path_factory.mktemp("bare"))


def take(probing, target, file, *options):
    written = probing("-t", target, "snapshot", "-o", file, *options)
    assert written.code == 0 and not written.err, written
    return file


def without_times(dump):
    """A dump without values that differ each time: the kind of target, the time and how long threads have
    been asleep."""
    dump["target"].pop("kind")
    dump.pop("timestamp")
    for thread in dump["threads"]:
        thread.pop("idle_seconds")
    return dump


@pytest.fixture
def asleep(interpreter):
    """recorded.py with all its threads asleep."""
    command = [interpreter.exe, PROGRAMS / "recorded.py"]
    with support.Program(command, env=interpreter.env) as program:
        program.line()
        support.wait_for_all_asleep(program.pid, 4)
        yield program


def test_replay_is_what_was_live(probing, bare, asleep, tmp_path):
    live = support.dump(asleep.pid, *EVERYTHING[2:])
    file = take(probing, asleep.pid, tmp_path / "snapshot")
    there = json.loads(bare.replay(file, *EVERYTHING, "--json"))
    assert live["target"]["kind"] == "process" and there["target"]["kind"] == "snapshot"
    assert all(thread["read"] == "idle" for thread in live["threads"])
    assert without_times(there) == without_times(live)
    for options in ([], ["--native"], ["--locals"], ["--source"]):
        live = support.dump(asleep.pid, *options)
        there = json.loads(bare.replay(file, "debug", "--dump", "--json", *options))
        assert without_times(there) == without_times(live), options


def functions(dump):
    return [frame["func"] for thread in dump["threads"] for frame in thread["frames"]]


def content(file):
    """The compressed part of a snapshot, and all the rest."""
    environment.need("zstd")
    body = file.read_bytes()
    return body[:HEADER] + subprocess.run(["zstd", "-dcq"], input=body[HEADER:],
                                          stdout=subprocess.PIPE, check=True).stdout


def digits(number):
    """The middle of an int, as it lies in memory."""
    values = []
    while number:
        values.append(number & (1 << 30) - 1)
        number >>= 30
    return struct.pack("<3I", *values[3:6])


def holds(file, text):
    """True if it is there, also across two pages, which may be anywhere in a snapshot."""
    return text in file or any(text[:cut] in file and text[cut:] in file
                               for cut in range(4, len(text) - 3))


def test_redacted_tells_no_values(probing, bare, interpreter, tmp_path):
    seeds = ["argument-7d1f0c", "environment-e09a35"]
    command = [interpreter.exe, PROGRAMS / "secrets.py", "plain", seeds[0]]
    with support.Program(command, env=dict(interpreter.env, SECRET=seeds[1])) as program:
        numbers = json.loads(program.line())
        support.wait_for_all_asleep(program.pid, 3)
        live = support.dump(program.pid, "--native")
        whole = content(take(probing, program.pid, tmp_path / "whole"))
        file = take(probing, program.pid, tmp_path / "redacted", "--redact")
    redacted = content(file)
    for seed, number in zip(seeds, numbers):
        texts = [seed.encode(), seed.encode("utf-16-le"), digits(number)]
        assert all(holds(whole, text) for text in texts)
        assert not [text for text in texts if text in redacted]

    for options in (["--native"], ["--native", "--locals"], []):
        dump = json.loads(bare.replay(file, "debug", "--dump", "--json", *options))
        assert not [seed for seed in seeds if seed in json.dumps(dump)]
        for thread, there in zip(live["threads"], dump["threads"]):
            frames = thread["frames"] if "--native" in options else support.python_frames(thread)
            for frame in there["frames"]:
                assert not [each for each in frame.pop("locals", []) if each["value"]]
            assert (there["name"], there["frames"]) == (thread["name"], frames)


@pytest.fixture(scope="module")
def stack_text(tmp_path_factory):
    library = tmp_path_factory.mktemp("stack_text") / "stack_text.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-g", "-o", library,
                    PROGRAMS / "stack_text.c"], check=True)
    return library


@pytest.mark.parametrize("leaf", ["sleep", "spin"])
def test_redacted_has_no_text_of_c_stacks(probing, bare, interpreter, stack_text, tmp_path, leaf):
    """Of a C stack only the words for unwinding stay, which suffice for the same stacks."""
    if not interpreter.has_ctypes:
        pytest.skip("it has no ctypes")
    text = "on-the-c-stack-5b07e1"
    command = [interpreter.exe, PROGRAMS / "stack_text.py", stack_text, leaf, text]
    with support.Program(command, env=interpreter.env) as program:
        program.line()
        while "stack_text" not in functions(support.dump(program.pid, "--native")):
            assert program.alive()
        if leaf == "sleep":
            support.wait_for_all_asleep(program.pid, 1)
        plain = take(probing, program.pid, tmp_path / "plain")
        redacted = take(probing, program.pid, tmp_path / "redacted", "--redact")
    assert text.encode() in content(plain) and text.encode() not in content(redacted)
    dumps = [json.loads(bare.replay(file, "debug", "--dump", "--json", "--native"))
             for file in (plain, redacted)]
    assert {"stack_text", "stack_text_below", "<module>"} <= set(functions(dumps[0]))
    for dump in dumps:  # each at another instruction of its loop
        dump["threads"][0].pop("pause_us")
        [frame] = [f for f in dump["threads"][0]["frames"] if f["func"] == "stack_text"]
        for name in ("ip", "offset", "line"):
            frame.pop(name)
    assert without_times(dumps[0])["threads"] == without_times(dumps[1])["threads"]


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_snapshot_of_a_core(probing, bare, asleep, tmp_path):
    subprocess.run(["gcore", "-o", tmp_path / "core", str(asleep.pid)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    core = tmp_path / ("core.%d" % asleep.pid)
    seen = probing("-t", core, *EVERYTHING, "--json")
    assert seen.code == 0, seen
    file = take(probing, core, tmp_path / "snapshot")
    there = json.loads(bare.replay(file, *EVERYTHING, "--json"))
    assert without_times(there) == without_times(json.loads(seen.out))
    main = support.python_frames(there["threads"][0])
    assert [frame["func"] for frame in main] == ["main", "<module>"]


def test_snapshot_is_of_one_format(probing, asleep, tmp_path):
    file = take(probing, asleep.pid, tmp_path / "snapshot")
    head = file.read_bytes()[:HEADER]
    assert head[:10] == b"\x89PRBS\r\n\x1a\x01\x00" and struct.unpack_from("<i", head, 12) == (
        asleep.pid,)
    assert re.match(rb"\d+\.\d+", head[56:80])
