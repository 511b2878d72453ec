# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing perf --torch`, with and without --exact, in the loops that people train with: shares of all parts of
the step beside clocks in the program."""
import contextlib
import json
import os
import re
import socket
import subprocess
import time

import pytest

import profiles
import support
import training
from environment import wait_until
from gateway_client import Gateway

SHORT = ["closure", "trainer", "evaluation", "checkpointing", "gan"]
LONG = SHORT + ["plain", "sgd", "lbfgs", "decorated", "reentrant", "accumulation", "models", "ema", "hidden", "amp"]
EXACT = {"forward": "forward_ms", "backward": "backward_ms", "optimizer": "optimizer_ms", "data loading": "data_ms",
         "evaluation (no gradient)": "evaluation_ms", "communication": "communication_ms",
         "other": "other_ms"}
EVALUATION = "evaluation (no gradient)"
SMALL = "32"  # of a model that takes little, so that waits are most of a step on a busy machine, too


@pytest.fixture(params=training.TORCHES, ids=repr)
def torch(request):
    return request.param


def start(torch, kind, *width):
    return torch.start("kinds.py", kind, *width)


def run(process, *options):
    done = subprocess.run([support.BINARY, str(process.pid), *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=500, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def measured(process, *options):
    """What the command found, and the parts that the program was in meanwhile."""
    assert process.line(timeout=400) == "ready"
    return measured_again(process, *options)


def measured_again(process, *options):
    process.send(b"begin\n")
    assert process.line(timeout=100) == "begun"
    found = json.loads(run(process, "perf", "--torch", "--json", *options))
    process.send(b"end\n")
    return found, json.loads(process.line(timeout=100))


def shares_within(times, spans):
    """Of these spans of time: the share of each part."""
    total, spans = {}, sorted(spans)
    for name, begin, end in times:
        total[name] = total.get(name, 0) + sum(
            max(0, min(end, last) - max(begin, first)) for first, last in spans)
    whole = sum(total.values())
    assert whole > 0
    return {name: each / whole for name, each in total.items()}


def sampled_spans(process, since):
    """Of the steps that --exact has timed: begin and end."""
    rows = json.loads(run(process, "query", "-f", "json", "SELECT timestamp, duration FROM python.torch_step_timing "
                          "WHERE kind = 'sampled' AND timestamp > %f" % since))
    return [(row["timestamp"] - row["duration"] / 1e3, row["timestamp"]) for row in rows]


@pytest.mark.parametrize("kind", LONG if support.LONG else SHORT)
def test_samples(torch, kind):
    with start(torch, kind) as process:
        found, times = measured(process, "-d", "%ds" % support.count(3, 20), "-r", "400")
    begin = found["timestamp"]
    truth = shares_within(times, [(begin, begin + found["duration_ns"] / 1e9)])
    parts = {node["name"]: node for node in found["nodes"] if node["parent"] is None or node["parent"] < 0}
    assert sum(node["share"] for node in parts.values()) == pytest.approx(1, abs=1e-3)
    for name in {*truth, *parts}:
        node = parts.get(name, {"share": 0, "share_low": 0, "share_high": 0})
        share = truth.get(name, 0)
        if name not in parts and share * found["independent_samples"] < 10:
            continue
        # Twice the 95 % bounds, which one value in twenty exceeds by chance.
        least, most = (2 * node["share_" + which] - node["share"] for which in ("low", "high"))
        assert least - 0.03 <= share <= most + 0.03, (name, share, node, truth)


@pytest.mark.parametrize("kind", LONG if support.LONG else SHORT)
def test_exact(torch, kind):
    with start(torch, kind) as process:
        begin = time.time()
        found, times = measured(process, "--exact", "--steps", str(support.count(20, 100)))
        spans = sampled_spans(process, begin)
    truth = shares_within(times, spans)
    ours = {name: found[key] / found["duration_ms"] for name, key in EXACT.items()}
    assert sum(ours.values()) == pytest.approx(1, abs=1e-6)
    for name in {*truth, *ours}:
        # Time that the agent's functions take lies in the program's clocks.
        agent = found["agent_median_ms"] / found["timed_median_ms"]
        assert ours.get(name, 0) == pytest.approx(truth.get(name, 0), abs=0.05 + agent), (name, agent, ours, truth)
    tops = [node for node in found["nodes"] if node["parent"] is None or node["parent"] < 0]
    assert sum(node["total_ms"] for node in tops) <= 1.02 * (
        found["forward_ms"] + found["backward_ms"] + found["evaluation_ms"]), (tops, found)


@contextlib.contextmanager
def two_ranks(torch, kind):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(torch.start("kinds.py", kind, env=dict(
            MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=each, WORLD_SIZE="2"))) for each in "01"]


def test_waiting_for_another_rank_is_communication(torch):
    """C++ waits for it, within backward."""
    with two_ranks(torch, "ranks") as (rank, _):
        found, times = measured(rank, "-d", "3s", "-r", "200")
    begin = found["timestamp"]
    truth = shares_within(times, [(begin, begin + found["duration_ns"] / 1e9)])
    share = {node["name"]: node["share"] for node in found["nodes"] if node["parent"] is None or node["parent"] < 0}
    assert share["communication"] > share["backward"], found["nodes"]
    assert share["communication"] + share["backward"] == pytest.approx(truth["backward"], abs=0.1), (share, truth)
    assert "waits for other ranks" in found["verdicts"][0]["text"]


def test_exact_times_of_a_rank(torch):
    """What DDP waits for after the last gradient is of the backward pass."""
    with two_ranks(torch, "ranks") as (rank, _):
        begin = time.time()
        found, times = measured(rank, "--exact", "--steps", str(support.count(8, 50)))
        truth = shares_within(times, sampled_spans(rank, begin))
    agent = found["agent_median_ms"] / found["timed_median_ms"]
    for name, key in EXACT.items():
        if name != "communication":
            ours = found[key] / found["duration_ms"]
            assert ours == pytest.approx(truth.get(name, 0), abs=0.05 + agent), (name, agent, ours, truth)


LATE = r"rank 1 is \d+ ms late at each step, in `time.sleep` kinds.py:\d+"


def test_the_late_rank_is_named(torch):
    """From the waiting rank's side, from its own, and for the job; the waiting costs time between the looks, so that
    few looks are had on a busy machine, and what is not sure is not said."""
    def told(*words):
        done = subprocess.run([support.BINARY, *words], capture_output=True, text=True, check=True, timeout=300)
        return done.stdout

    with two_ranks(torch, "ranks") as (waits, late):
        for rank in (waits, late):
            assert rank.line(timeout=400) == "ready"
        text = profiles.repeated(lambda: told(str(waits.pid), "perf", "--torch", "-d", "2s"),
                                 lambda text: re.search(LATE, text.splitlines()[0]))
        assert re.match(r"\d+ % of each step waits for other ranks: " + LATE, text), text
        assert re.search(r"  communication: mostly waiting for rank 1\n", text), text
        assert " looks at all 2 ranks: in collectives " in text.splitlines()[1]
        text = profiles.repeated(lambda: told(str(late.pid), "perf", "--torch", "-d", "2s"),
                                 lambda text: text.startswith("this is the late rank: "))
        assert re.match("this is the late rank: " + LATE, text), text
        found = profiles.repeated(lambda: json.loads(told("cluster", "slow", str(late.pid), "--json", "-d", "4s")),
                                  lambda found: found["sentence"])
        assert re.fullmatch(LATE, found["sentence"]), found
        # It sleeps 150 ms, and the machine may make it later.
        assert found["late_ms"] > 100 and found["place"] in found["sentence"]


def test_of_equal_ranks_none_is_late(torch):
    with two_ranks(torch, "even") as ranks:
        for rank in ranks:
            assert rank.line(timeout=400) == "ready"
        text = run(ranks[0], "perf", "--torch", "-d", "2s")
    # Waiting for the network may be said; what would refute that has the word, too.
    assert not re.search(r"rank \d+ is ", text.partition("\nPython ")[0]) and "waiting for rank" not in text, text


def test_recomputed_modules_are_marked(torch):
    with start(torch, "checkpointing") as process:
        found, _ = measured(process, "--exact", "--steps", "10")
        nodes = {node["path"]: node for node in found["nodes"]}
        assert [node["path"] for node in found["nodes"] if node["parent"] is None or node["parent"] < 0] == ["model"]
        # Newer torch leaves the block early, and not what it has called first.
        assert nodes["model.layers.0.norm"]["recompute_ms"] > 0 == nodes["model"]["recompute_ms"]
        assert nodes["model.layers.0"]["calls"] == found["steps"]
        text = run(process, "perf", "--torch", "-d", "2s", "-r", "400")
    assert " (recomputed)\n" in text.partition("  backward\n")[2]
    assert "(recomputed)" not in text.partition("  backward\n")[0]


def test_what_is_done_now_and_then_is_timed(torch):
    """Each sixth step is followed by an evaluation: an even period, of which every other step would see all or
    nothing."""
    with start(torch, "evaluation") as process:
        found, _ = measured(process, "--exact", "--steps", "60")
    model, = [node for node in found["nodes"] if node["path"] == "model" and node["evaluation"]]
    # 24 calls every six steps; which steps are timed is chance.
    assert 1 < model["calls"] / found["steps"] < 8
    trained, = [node for node in found["nodes"] if node["path"] == "model" and not node["evaluation"]]
    assert trained["calls"] == found["steps"] == found["passes"]


def test_nothing_is_left_of_it(torch):
    names = "import torch.utils.data.dataloader as d; (d._BaseDataLoaderIter.__next__.__module__, " \
            "torch.autograd.backward.__module__)"
    with start(torch, "plain") as process:
        measured(process, "--exact", "--steps", "3")
        assert run(process, "eval", names) == "('torch.utils.data.dataloader', 'torch.autograd')\n"


def test_steps_that_nobody_counts_have_no_length(torch):
    with start(torch, "sgd") as process:
        assert process.line(timeout=400) == "ready"
        text = run(process, "perf", "--torch", "-d", "2s", "-r", "200")
    head, = [line for line in text.splitlines() if line.startswith("Python ")]
    assert " · at least " in head and " steps of " not in head
    row, = [line for line in text.splitlines() if line.endswith("  backward")]
    assert row.endswith(" %            backward"), row


@pytest.mark.parametrize("kind, part, words", [
    ("workers", "data loading", "of each step waits for the data loader: 2 workers, "),
    ("loader", "data loading", "the training thread makes the batches itself, "),
    ("evaluation", EVALUATION, "% is evaluation"),
    ("plain", None, None)])
def test_verdict(torch, kind, part, words):
    with start(torch, kind) as process:
        # Of few samples, as a busy machine gives, there is no verdict.
        assert process.line(timeout=400) == "ready"
        for _ in range(1 if part is None else 4):
            found, _ = measured_again(process, "-d", "3s", "-r", "300")
            text = run(process, "perf", "--torch", "-d", "3s", "-r", "300")
            if found["verdicts"] and "refuted by: " in text:
                break
    if part is None:
        assert found["verdicts"] == [] and text.startswith("%d  " % process.pid), found["verdicts"]
        return
    verdict = found["verdicts"][0]
    assert verdict["part"] == part and words in verdict["text"] and verdict["evidence"] and verdict["refuted_by"]
    first, evidence, refuted = text.splitlines()[:3]
    assert words in first and evidence.startswith("  evidence: ") and refuted.startswith("  refuted by: ")
    if kind == "loader":
        assert " in slow_item" in first
    if kind == "workers":
        assert re.search(r", none idle: more workers, or look at `Images.__getitem__` \(\d+ % of their time\)$",
                         first), first


def test_memory_that_grows(torch):
    """What holds it, and how much it is a step."""
    with start(torch, "keeps", SMALL) as process:
        assert process.line(timeout=400) == "ready"
        text = profiles.repeated(lambda: run(process, "perf", "--torch", "-d", "3s"), lambda text: text.startswith("memory "))
    first, evidence, refuted = text.splitlines()[:3]
    found = re.fullmatch(r"memory grows ([0-9.]+) MiB a step, held by `__main__.history`", first)
    # Of few seconds on a busy machine, whose steps are of unlike length.
    assert found and 1.4 < float(found.group(1)) < 3, text
    assert re.match(r"  evidence: it holds [0-9.]+ MiB more than .* before; resident: .* → ", evidence)
    assert refuted.startswith("  refuted by: a longer look")


def test_memory_that_grows_in_overview(torch):
    """From rows of memory_usage and of steps, and two walks of its objects."""
    with start(torch, "keeps", SMALL) as process:
        assert process.line(timeout=400) == "ready"
        run(process, "inject")
        command = [support.BINARY, "overview", "--json", "--watch=100ms", str(process.pid)]
        env = dict(os.environ, PROBING_LIMITS="leak=10,leak_for=6")
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env) as looks:
            for look in map(json.loads, looks.stdout):
                told = [each["sentence"] for each in look["findings"] if each["rule"] == "leak"]
                if told and "held by" in told[0]:
                    break
            looks.terminate()
            looks.stdout.close()
    found = re.fullmatch(r"its memory grows all the time: by [0-9.]+ MiB in .*, ([0-9.]+) MiB a step, "
                         r"held by `__main__.history`", told[0])
    assert found and 1.5 < float(found.group(1)) < 2.6, told


def test_slow_is_asked_for_by_name(torch):
    """`skill run slow` samples the steps, too, and says it first."""
    def told(kind, *options):
        with start(torch, kind, SMALL) as process:
            assert process.line(timeout=400) == "ready"
            return profiles.repeated(lambda: run(process, "skill", "run", "slow", *options),
                                     lambda text: " of each step " in text or kind == "plain")

    lines = told("workers").splitlines()
    assert " of each step waits for the data loader: 2 workers, " in lines[0], lines
    assert lines[1].startswith("  evidence: ") and lines[2].startswith("  refuted by: ")
    assert json.loads(told("loader", "--json"))[0]["verdicts"][0]["part"] == "data loading"
    assert json.loads(told("plain", "--json"))[0]["verdicts"] == []


@pytest.mark.parametrize("kind, sentence", [
    ("loader", r"\d+ % of each step waits for data, in a data loader or before the first module"),
    ("evaluation", r"\d+ % is evaluation: modules that run without gradients"),
    ("plain", None)])
def test_overview_of_recorded_steps(torch, kind, sentence):
    """Also the page, which has it from there. Once steps are recorded, nobody has to ask for it."""
    with start(torch, kind, *([SMALL] if sentence else [])) as process:
        assert process.line(timeout=400) == "ready"
        run(process, "inject")

        def rows():
            sql = "SELECT count(*) AS n FROM python.torch_step_timing"
            return json.loads(run(process, "query", "-f", "json", sql))[0]["n"]

        wait_until(lambda: rows() >= 30)
        told = subprocess.run([support.BINARY, "why", str(process.pid), "--json"], stdout=subprocess.PIPE, check=False)
        seen = [json.loads(told.stdout)["targets"][0], json.loads(run(process, "overview", "--json"))]
        with Gateway(process.pid) as gateway:
            seen.append(gateway.ask("/v1/overview").json)
    for look in seen:
        told = [each for each in look["findings"] if each["rule"] == "training"]
        if sentence is None:
            assert told == [], told
            continue
        [finding] = told
        assert re.fullmatch(sentence, finding["sentence"]) and finding["kind"] == "steps", finding
        assert re.search(r"\d+ steps of .*(data|evaluation) ", finding["evidence"][0]["text"]), finding
        assert finding["wrong_if"] and finding["next"].endswith(" perf --torch")
