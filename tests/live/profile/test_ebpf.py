# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples by eBPF: no stops, no impossible stacks, names of living functions alone, beside any tracer."""
import json
import os
import re
import subprocess

import pytest

import profiles
import support
import test_churn
from test_profile import in_chains

OK, FAILED, USAGE, UNSUPPORTED, PERMISSION = range(5)
SAMPLES, RATE, SECONDS = support.count(1000, 100000), 5000, support.count(1, 10)  # of each recording
VERSIONS = support.one_per_version((3, 7), (3, 14))
VARIANTS, KINDS = ["functions", "generators", "methods", "lines"], ["plain", "c", "generators"]  # of churn.py, of depths.py


@pytest.fixture(scope="module", autouse=True)
def possible():
    done = subprocess.run([support.BINARY, "doctor", "--json"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    line, = [each for each in json.loads(done.stdout.decode())["findings"] if each["name"] == "eBPF"]
    if line["verdict"] != "ok":
        pytest.skip("no samples by eBPF here: " + line["means"])


def perf(pid, *options):
    return profiles.Recording(pid, "--source", "ebpf", *options)


def first(pid):
    """What keeps this kernel or container from it, as the command says."""
    code, _, err = perf(pid, "-d", "100ms").end()
    if code in (UNSUPPORTED, PERMISSION) and "BPF program" in err:
        pytest.skip("no samples by eBPF here: " + err.splitlines()[0])
    assert code == OK, err


def stacks(pid, tmp_path, rate=RATE):
    """{stack: weight} of some thousand samples, and how many there were; none by a stop."""
    found, taken = {}, 0
    first(pid)
    for _ in range(support.count(60, 3600)):
        file = tmp_path / "run.collapsed"
        result = perf(pid, "-d", SECONDS, "-r", rate, "--lines", "--json", "-o", file).result()
        assert result["cost"]["source"] == "ebpf" and result["cost"]["stops"] == 0
        taken += result["cost"]["unstopped"]
        for line in file.read_text().splitlines():
            stack, _, weight = line.rpartition(" ")
            found[stack] = found.get(stack, 0) + int(weight)
        if taken >= SAMPLES:
            return found, taken
    raise AssertionError("only %d samples" % taken)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_no_impossible_stacks(tmp_path, interpreter, variant):
    with support.Target(interpreter, support.HERE / "programs" / "churn.py", variant, 1) as target:
        assert target.line() == "ready"
        found, taken = stacks(target.pid, tmp_path)
    unreadable = found.pop("<unreadable>", 0)
    found.pop("<not in Python>", None)
    assert len(found) > 20
    for stack in found:
        assert not test_churn.impossible(in_chains(stack)), stack
    assert unreadable < 0.005 * sum(found.values())
    support.report("eBPF, churn of %s, %s: 0 of %d samples impossible, %.2f %% unreadable" % (
        variant, interpreter, taken, 100 * unreadable / sum(found.values())))


def at_depths(found):
    """{depth: share of the time} in the work of depths.py."""
    shares = {}
    for line, weight in found.items():
        calls = re.findall(r"(?:^|;)(\S+) \(", line)
        if calls[-1:] == ["work"]:
            depth = len([each for each in calls if each.rpartition(".")[2] == "down"])
            shares[depth] = shares.get(depth, 0) + weight
    whole = sum(shares.values())
    return {depth: weight / whole for depth, weight in shares.items()}


def distance(found, truth):
    """The part of the time that is elsewhere."""
    return sum(abs(found.get(depth, 0) - truth.get(depth, 0)) for depth in {*found, *truth}) / 2


def depths(interpreter, kind, tmp_path):
    """(shares of the depths as sampled, as the program says, number of samples)"""
    shared = support.Shared()
    program = support.HERE / "programs" / "depths.py"
    with support.Target(interpreter, program, kind, shared.path) as target:
        assert target.line() == "ready"
        before = [shared[depth] for depth in range(64)]
        # A look at a deep stack takes longer, and the time is the program's: the more of them, the more of it.
        found, taken = stacks(target.pid, tmp_path, 2000)
        spent = {depth: shared[depth] - before[depth] for depth in range(64)}
    shared.close()
    return at_depths(found), {depth: each / sum(spent.values()) for depth, each in spent.items() if each}, taken


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_depths_and_their_time(tmp_path, interpreter, kind):
    """All levels are there, and each depth has its time, though the program asks for its clock all the time, at
    which the kernel counts anew."""
    found, truth, taken = depths(interpreter, kind, tmp_path)
    off = distance(found, truth)
    assert set(found) == set(truth)
    assert off < 0.05 + 1 / taken ** 0.5, (off, found, truth)
    support.report("eBPF, depths by %s, %s: no level missing in %d samples, shares %.1f points off" % (
        kind, interpreter, taken, 100 * off))


@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_dead_functions_are_never_named(tmp_path, interpreter):
    """Each set of functions lies where the one before it did; their names belong together."""
    shared = support.Shared()
    program = support.HERE / "programs" / "reused_codes.py"
    with support.Target(interpreter, program, shared.path) as target:
        assert target.line() == "ready"
        begin = shared[0]
        found, _ = stacks(target.pid, tmp_path)
        end = shared[0]
    shared.close()
    for line in found:
        serials = set(re.findall(r"gen_(\d{8})", line))
        names = re.findall(r"gen_\d{8}_([abc]) \(<gen_\d{8}>:(\d)\)", line)
        assert len(serials) < 2 and all(begin <= int(each) <= end for each in serials), line
        assert all(number in {"a": "12", "b": "34", "c": "5678"}[letter]
                   for letter, number in names), line


@pytest.mark.parametrize("interpreter", VERSIONS[-1:], ids=repr)
def test_beside_a_tracer_and_another_recording(interpreter):
    """Where a stopping sampler waits for its turn, nothing is lost."""
    with support.Target(interpreter, profiles.PROGRAM, "0") as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        first(target.pid)
        with profiles.tracer_of(target.pid):
            before = profiles.counted(target.pid)
            both = [perf(target.pid, "-d", "2s", "-r", 1000, "--json") for _ in range(2)]
            for result in [each.result() for each in both]:
                assert result["cost"]["unreadable"] == result["cost"]["stops"] == 0
                assert result["weight_ns"] <= profiles.counted(target.pid) - before
                assert result["cost"]["unstopped"] > 0.9 * result["weight_ns"] / 1e6 - 5
        assert "0 stops" in perf(target.pid, "-d", "200ms").end()[1]


def test_a_stack_at_the_usual_limit_of_recursion(tmp_path):
    program = tmp_path / "deep.py"
    program.write_text("def down(left):\n"
                       "    while not left:\n"
                       "        pass\n"
                       "    down(left - 1)\n"
                       "print('ready', flush=True)\n"
                       "down(970)\n")
    with support.Target(VERSIONS[-1], program) as target:
        assert target.line() == "ready"
        first(target.pid)
        file = tmp_path / "run.collapsed"
        found = profiles.repeated(lambda: perf(target.pid, "-d", "200ms", "-o", file).end() and file.read_text(),
                                  lambda text: text)
    assert "<unreadable>" not in found and found.count(";down") == 971 * len(found.splitlines()), found[-300:]


@pytest.mark.parametrize("how", [[], ["--ring", "1m"]])
def test_a_recording_in_a_file(tmp_path, how):
    with support.Target(VERSIONS[-1], profiles.PROGRAM, "0") as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        first(target.pid)
        file = tmp_path / "run.profile"
        recording = perf(target.pid, *how, "-o", file)
        shown = recording.until_taken(file, 20)
    assert re.search(r"^cost: \d+ samples by eBPF, 0 stops ", shown, re.M), shown
    again = profiles.profile(file)
    assert again["cost"]["source"] == "ebpf" and again["cost"]["unstopped"] >= 20 and again["weight_ns"]


@pytest.mark.parametrize("options", [["--cc"], ["--async"], ["--subprocesses"], ["--tid", "1"]])
def test_options_that_it_lacks(options):
    code, out, err = perf(os.getpid(), *options).end()
    assert code == USAGE and not out and "--source" in err


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 15))[:1], ids=repr)
def test_versions_that_it_lacks(interpreter):
    with support.Target(interpreter, profiles.PROGRAM, "0") as target:
        assert target.line() == "ready"
        code, _, err = perf(target.pid, "-d", "1s").end()
    assert code == UNSUPPORTED and "'--source stops' works" in err


def test_without_the_rights():
    """Root as in most containers."""
    without = ["setpriv", "--bounding-set", "-sys_admin,-cap_38,-cap_39"]
    with support.Target(VERSIONS[-1], profiles.PROGRAM, "0") as target:
        assert target.line() == "ready"
        done = subprocess.run([*without, support.BINARY, str(target.pid), "perf", "--source", "ebpf"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, check=False)
    assert done.returncode == PERMISSION and b"CAP_BPF and CAP_PERFMON" in done.stderr, done
    found = subprocess.run([*without, support.BINARY, "doctor"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    assert re.search(r"limited +eBPF +it needs root, or CAP_BPF", found.stdout.decode()), found
