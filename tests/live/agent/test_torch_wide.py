# SPDX-License-Identifier: GPL-3.0-or-later
"""Models of many thousand modules, such as mixtures of experts: tables and times have all modules, or
report what is missing."""
import json
import subprocess
import time

import pytest

import support
import training
from environment import FAILED, OK
from test_torch_gpu import PRETEND, driver  # noqa: F401 (fixture)

MODULES = 9000
# Then a ring has room for some 60,000 parts of rows, in place of 260,000.
LITTLE = {"PROBING_MAX_MEMORY": "40000000"}


@pytest.fixture(params=training.TORCHES, ids=repr)
def torch(request):
    request.param.check()
    return request.param


def exact(process, *options):
    """It trains as long as the command runs."""
    process.send(b"\n")
    done = subprocess.run([support.BINARY, str(process.pid), "perf", "--torch", "--exact", "-d", "1000s", *options],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1100,
                          encoding="utf-8", check=False)
    process.send(b"\n")
    return done


def check_calls(found, passes):
    """Each module was called once in each pass of each step that was timed."""
    calls = {node["path"]: node["calls"] for node in found["nodes"]}
    assert len(calls) == MODULES + 1 and "net.layers.%d" % (MODULES - 1) in calls, len(calls)
    assert set(calls.values()) == {found["steps"] * passes}, set(calls.values())
    assert found["unnamed_calls"] == 0 and all(node["backward_ms"] > 0 for node in found["nodes"])


def test_all_are_named_and_timed(torch):
    with torch.start("wide.py", str(MODULES), "2") as process:
        assert process.line(timeout=400) == "ready"
        done = exact(process, "--steps", "2", "--json")
        assert done.returncode == OK, done.stderr
        found = json.loads(done.stdout)
        assert found["steps"] == 2 and found["steps_cut"] == 0
        check_calls(found, 2)


def test_steps_that_the_ring_has_dropped(torch):
    """They are left out, rather than counted with the calls that are left of them."""
    with torch.start("wide.py", str(MODULES), "1", env=LITTLE) as process:
        assert process.line(timeout=400) == "ready"
        done = exact(process, "--steps", "4", "--json")
        assert done.returncode == OK, done.stderr
        found = json.loads(done.stdout)
        assert found["steps"] + found["steps_cut"] == 4 and found["steps"] and found["steps_cut"] >= 2
        check_calls(found, 1)
        done = exact(process, "--steps", "4")
        assert done.returncode == OK and " timed steps are left out: the ring has dropped some of their calls" in \
            done.stdout, done.stdout[:1000]


def test_no_step_is_whole(torch):
    with torch.start("wide.py", str(MODULES), "4", env=LITTLE) as process:
        assert process.line(timeout=400) == "ready"
        done = exact(process, "--steps", "1")
        assert done.returncode == FAILED and "none of 1 timed steps" in done.stderr, done
        assert "a step has up to %d calls" % (4 * (MODULES + 1)) in done.stderr, done


def test_the_table_has_all(probing, torch):
    with torch.start("wide.py", "66000", "1") as process:
        assert process.line(timeout=400) == "ready"
        done = probing(process.pid, "query", "-f", "json", "SELECT count(*) AS n, max(all_parameters) AS parameters "
                                                           "FROM torch.modules")
        assert done.code == OK and json.loads(done.out) == [{"n": 66002, "parameters": 66000}], done

def gpu_sums(rows):
    """By module, the sums of forward over the completely known steps."""
    whole = {row["local_step"] for row in rows if row["stage"] == "step"}
    sums = {}
    for row in rows:
        if row["stage"] == "forward" and row["local_step"] in whole:
            sums[row["module"]] = sums.get(row["module"], 0) + row["duration"]
    return whole, sums


def test_times_of_a_gpu_that_are_not_whole(probing, torch, driver):  # noqa: F811
    """A step that the agent followed only in part is in no sum, and the output says so."""
    with torch.start("wide.py", "4500", "1") as process:
        assert process.line(timeout=400) == "ready"
        assert probing(process.pid, "eval", PRETEND % str(driver)).code == OK
        assert probing(process.pid, "config", "torch.profiling=0.000001").code == OK
        # The first step, which is not counted, gives the modules their names.
        assert exact(process, "--steps", "1").returncode == OK
        since = time.time()
        done = exact(process, "--steps", "3", "--json")
        assert done.returncode == OK, done.stderr
        found = json.loads(done.stdout)
        sql = "SELECT local_step, stage, module, duration FROM python.torch_gpu WHERE timestamp > %f" % since
        whole, sums = gpu_sums(json.loads(probing(process.pid, "query", "-f", "json", sql).out))
        assert 0 < found["gpu_steps"] == len(whole) < found["steps"], (whole, found["gpu_steps"])
        for node in found["nodes"]:
            assert (node["gpu_forward_ms"] or 0) == pytest.approx(sums.get(node["path"], 0), abs=1e-5)
        done = exact(process, "--steps", "3")
        assert "the GPU's times of " in done.stdout and " timed steps are not known: " in done.stdout, done.stdout[:999]
