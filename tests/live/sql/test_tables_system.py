# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of the machine agree with psutil; of cores and snapshots they say that the machine may be
another one."""

import json
import os
import re
import subprocess
import sys
import time

import psutil
import pytest

import environment
import support
import tables

NVIDIA = support.HERE / "programs" / "nvidia_ml.c"


def test_info():
    row = tables.query(None, "SELECT * FROM system.info").one()
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    assert row["hostname"] == os.uname().nodename and row["kernel"] == os.uname().release
    assert row["machine"] == os.uname().machine and row["kernel_build"] == os.uname().version
    assert row["cpus"] == psutil.cpu_count()
    assert row["memory_total"] == memory.total and row["swap_total"] == swap.total
    assert abs(row["memory_available"] - memory.available) < memory.total / 8
    assert 0 < row["memory_free"] <= row["memory_total"]
    assert abs(row["boot_time"] - psutil.boot_time()) < 3
    assert abs(row["time"] - time.time()) < 60
    assert abs(row["uptime"] - (row["time"] - row["boot_time"])) < 0.01
    for minutes, load in zip((1, 5, 15), os.getloadavg()):
        assert abs(row["load_%d" % minutes] - load) < 3


def test_processes_are_those_of_psutil(target):
    process = target("sleeper.py")
    support.wait_for_sleep(process.pid, "pipe_read")
    before = set(psutil.pids())
    rows = tables.query(None, "SELECT * FROM system.process").by("pid")
    assert before & set(psutil.pids()) <= set(rows)
    row, seen = rows[process.pid], psutil.Process(process.pid)
    assert row["ppid"] == os.getpid() and row["name"] == seen.name()[:15]
    assert row["cmdline"] == " ".join(seen.cmdline()) and row["exe"] == seen.exe()
    assert row["user"] == environment.user_name() and row["uid"] == os.geteuid()
    assert (row["kind"], row["state"], row["threads"]) == ("program", "idle", 1)
    assert abs(row["start_time"] - seen.create_time()) < 1.5 and row["age"] < 120
    assert row["vsize"] == seen.memory_info().vms
    assert abs(row["rss"] - seen.memory_info().rss) < seen.memory_info().rss / 2
    assert abs(row["user_seconds"] - seen.cpu_times().user) < 0.05
    assert abs(row["system_seconds"] - seen.cpu_times().system) < 0.05
    assert row["nice"] == seen.nice() and row["_error"] is None


def test_one_process(target):
    process = target("sleeper.py", env={"RANK": "6", "LOCAL_RANK": "2"})
    rows = tables.query(None, "SELECT pid, rank, local_rank, python_version FROM system.process "
                              "WHERE pid = %d" % process.pid)
    row = rows.one()
    assert (row["rank"], row["local_rank"]) == (6, 2) and re.match(r"3|$", row["python_version"])
    assert tables.query(None, "SELECT pid FROM system.process WHERE pid = 4194304") == []


def test_kernel_threads_and_zombies():
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        rows = tables.query(None, "SELECT * FROM system.process").by("pid")
        row = rows[child.pid]
        assert (row["kind"], row["state"], row["cmdline"], row["rss"]) == (
            "zombie", "zombie", None, 0)
    if 2 in rows and rows[2]["name"] == "kthreadd":
        assert rows[2]["kind"] == "kernel" and rows[2]["python_version"] is None


def test_cpu_utilization():
    before, rows = psutil.cpu_times(percpu=True), tables.query(None, "SELECT * FROM cpu.utilization")
    after = psutil.cpu_times(percpu=True)
    assert [row["cpu"] for row in rows] == [None, *range(len(before))]
    for row, low, high in zip(rows[1:], before, after):
        for state in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"):
            seconds = row[state + "_seconds"]
            assert getattr(low, state) - 0.05 <= seconds <= getattr(high, state) + 0.05, state
        assert 0 <= row["busy"] <= 100
    total = sum(row["user_seconds"] for row in rows[1:])
    assert abs(rows[0]["user_seconds"] - total) < 0.5


@pytest.mark.parametrize("make,words", [(tables.core_of, "core file"),
                                        (tables.snapshot_of, "snapshot")])
@pytest.mark.parametrize("table", ["system.info", "system.process", "cpu.utilization",
                                   "gpu.devices", "gpu.utilization", "gpu.processes"])
def test_another_machine(target, tmp_path, make, words, table):
    other = make(target("sleeper.py").pid, tmp_path)
    answer = tables.query(other, "SELECT * FROM " + table)
    assert answer == []
    assert answer.notes == [
        "%s is empty: it tells of this machine, which a %s may not be of" % (table, words)]


def run(sql, **environment):
    done = subprocess.run([support.BINARY, "query", sql], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=dict(os.environ, **environment))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has GPUs")
@pytest.mark.parametrize("table", ["gpu.devices", "gpu.utilization", "gpu.processes", "gpu_metrics"])
def test_no_gpu(table):
    code, _, err = run("SELECT * FROM " + table)
    assert code == 0
    assert err == "probing: warning: no GPU can be seen: libnvidia-ml.so.1 is not installed here\n"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A folder with a stand-in for the driver's library: nvidia_ml.c has its data."""
    folder = tmp_path_factory.mktemp("nvidia")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", NVIDIA],
                   check=True)
    return folder


def rows_with_driver(folder, sql, **environment):
    """In another process, as a library once loaded stays the same."""
    script = ("import json, tables\nanswer = tables.query(None, %r)\n"
              "print(json.dumps([list(answer), answer.notes]))" % sql)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=support.HERE, check=True, stdout=subprocess.PIPE,
        env=dict(os.environ, LD_LIBRARY_PATH=str(folder), **environment))
    return json.loads(done.stdout.decode())


def test_gpus(driver):
    rows, notes = rows_with_driver(driver, "SELECT * FROM gpu.devices")
    assert notes == [] and len(rows) == 2
    assert rows[0] == {
        "gpu": 0, "name": "NVIDIA H200", "uuid": "GPU-0", "pci": "00000000:3B:00.0", "minor": 0,
        "compute_capability": "9.0", "memory_total": 150754820096, "power_limit": 700.0,
        "driver_version": "550.54.15", "cuda_version": "12.4", "_error": None}
    assert rows[1]["_error"] == "GPU is lost" and rows[1]["name"] is None


def test_gpu_utilization(driver):
    rows, _ = rows_with_driver(driver, "SELECT * FROM gpu.utilization WHERE gpu = 0")
    assert rows == [{
        "gpu": 0, "gpu_util": 87.0, "memory_util": 45.0, "memory_used": 50754820096,
        "memory_free": 100000000000, "memory_total": 150754820096, "temperature": 61.0,
        "power": 512.345, "sm_clock": 1980, "memory_clock": None,
        "_error": "memory_clock: Not Supported"}]


def test_gpu_metrics(driver):
    """The driver's values for the last seconds, and the present ones."""
    rows, _ = rows_with_driver(driver, "SELECT *, now() - timestamp AS age FROM gpu_metrics")
    ages = [row.pop("age") for row in rows]
    assert [(row["gpu"], row["gpu_util"], row["memory_util"]) for row in rows] == [
        (0, 10.0, 20.0), (0, 11.0, 21.0), (0, 12.0, 22.0), (0, 87.0, 45.0), (1, None, None)]
    assert ages == sorted(ages, reverse=True) and 3 <= ages[0] < 100 and ages[-1] < 100
    assert rows[2]["memory_used"] is None and rows[2]["_error"] is None
    assert (rows[3]["memory_used"], rows[3]["power"], rows[3]["temperature"]) == \
        (50754820096, 512.345, 61.0)
    assert rows[4]["_error"] == "GPU is lost"
    rows, _ = rows_with_driver(
        driver, "SELECT avg(gpu_util) FROM gpu_metrics WHERE timestamp > now() - 60")
    assert rows == [{"avg(gpu_util)": (10 + 11 + 12 + 87) / 4}]


def test_gpu_processes(driver):
    rows, _ = rows_with_driver(driver, "SELECT * FROM gpu.processes")
    assert rows == [{"gpu": 0, "pid": 4242, "memory_used": 50000000000, "_error": None},
                    {"gpu": 0, "pid": 4243, "memory_used": None, "_error": None},
                    {"gpu": 1, "pid": None, "memory_used": None, "_error": "GPU is lost"}]
    rows, _ = rows_with_driver(driver, "SELECT pid FROM gpu.processes WHERE gpu = 0", GPU_OTHERS="1000")
    assert [row["pid"] for row in rows] == [*range(10000, 11000), 4242, 4243]
    rows, _ = rows_with_driver(driver, "SELECT pid, _error FROM gpu.processes WHERE gpu = 0",
                               GPU_OTHERS="1000000")
    assert rows == [{"pid": None, "_error": "processes: 1000002 are more than are looked at"}]


def test_a_driver_that_does_not_start(driver):
    rows, notes = rows_with_driver(driver, "SELECT * FROM gpu.devices", NO_DRIVER="1")
    assert rows == []
    assert notes == ["no GPU can be seen: libnvidia-ml.so.1: Driver Not Loaded"]
