# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a process agree with the process itself, psutil and /proc: of a live process and a
snapshot in full, of a core as far as it has the data."""

import collections
import json
import os
import shlex
import signal
import time

import psutil
import pytest

import environment
import support
import tables
from agent import wait_until
from conftest import PROGRAMS
from library import NO_PROCESS, Error, Session

pytestmark = pytest.mark.every_interpreter  # of the few that tables.py chooses

Held = collections.namedtuple("Held", "process truth targets")
RANKS = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "EMPTY": "", "ODD": "a=b\nc ü"}


@pytest.fixture(scope="module", params=tables.chosen_interpreters(), ids=repr)
def held(request, tmp_path_factory):
    """holdings.py on an interpreter, with a core and a snapshot of it."""
    folder = tmp_path_factory.mktemp("holdings")
    command = [request.param.exe, PROGRAMS / "holdings.py", folder]
    with support.Program(command, env=dict(request.param.env, **RANKS)) as program:
        truth = json.loads(program.line())
        support.wait_for_sleep(truth["pid"], "pipe_read", truth["pid"])
        for tid in truth["tids"]:
            support.wait_for_sleep(truth["pid"], "futex", tid)
        targets = {"process": program.pid, "core": tables.core_of(program.pid, folder),
                   "snapshot": tables.snapshot_of(program.pid, folder)}
        yield Held(psutil.Process(program.pid), truth, targets)


@pytest.fixture(params=["process", "snapshot", "core"])
def kind(request):
    return request.param


@pytest.fixture(params=["process", "snapshot"])
def whole(request):
    """The kinds of target with complete data."""
    return request.param


def ask(held, kind, sql):
    return tables.query(held.targets[kind], sql)


# process.info

def test_info_everywhere(held, kind):
    row = ask(held, kind, "SELECT * FROM process.info").one()
    truth = held.truth
    for column in ("pid", "ppid", "pgid", "sid", "exe", "uid", "euid", "gid", "egid"):
        assert row[column] == truth[column], column
    assert row["cmdline"].partition(" ")[2] == "%s %s" % (PROGRAMS / "holdings.py", truth["argv"][1])
    assert row["name"][:15] == held.process.name()[:15], "gdb's cores have 16 bytes of it"
    assert row["state"] == "idle" and row["threads"] == 4
    assert (row["rank"], row["local_rank"], row["world_size"]) == (5, 1, 8)
    assert row["python_version"] == truth["version"]
    assert bool(row["free_threaded"]) == truth["free_threaded"]
    assert bool(row["debug_build"]) == truth["debug"]
    assert row["kind"] == kind and row["machine"] == os.uname().machine
    assert abs(row["time"] - time.time()) < 600


def test_info_whole(held, whole):
    row = ask(held, whole, "SELECT * FROM process.info").one()
    process = held.process
    assert row["cwd"] == held.truth["cwd"] and row["root"] == "/"
    assert row["user"] == environment.user_name()
    assert abs(row["start_time"] - process.create_time()) < 1.5
    assert abs(row["time"] - row["age"] - row["start_time"]) < 0.01
    assert row["nice"] == held.truth["nice"] == os.nice(0) + 3
    memory = process.memory_info()
    assert row["vsize"] == memory.vms
    assert abs(row["rss"] - memory.rss) <= memory.rss / 4
    assert row["rss"] == row["rss_anon"] + row["shared"]
    assert row["rss_peak"] >= row["rss"] and row["swap"] == 0
    times = process.cpu_times()
    assert abs(row["user_seconds"] - times.user) <= 0.1
    assert abs(row["system_seconds"] - times.system) <= 0.1
    assert row["fds"] == process.num_fds()
    assert row["minor_faults"] > 100
    assert row["tracer"] is None and row["exe_deleted"] == 0
    assert row["ns_pid"] == held.truth["pid"]
    for name in ("pid", "net", "mnt", "user"):
        link = os.readlink("/proc/%d/ns/%s" % (process.pid, name))
        assert "%s:[%d]" % (name, row[name + "_namespace"]) == link
    status = support.thread_status(process.pid)
    assert int(row["capabilities"], 16) == int(status["CapEff"], 16)
    assert row["seccomp"] == ["off", "strict", "filter"][int(status["Seccomp"])]


def test_info_costly(held):
    """Shared memory changes when another process of the same interpreter starts or ends."""
    def agrees():
        before = held.process.memory_full_info()
        row = ask(held, "process", "SELECT pss, uss, rss, _error FROM process.info").one()
        assert row["uss"] <= row["pss"] <= row["rss"] and row["_error"] is None
        return before == held.process.memory_full_info() and \
            (row["pss"], row["uss"]) == (before.pss, before.uss)

    wait_until(agrees, 60)


def test_info_says_what_a_core_lacks(held):
    row = ask(held, "core", "SELECT rss, cwd, nice, fds, start_time, _error FROM process.info").one()
    assert row["_error"] == "not in the core file: status, cwd, fd"
    assert [row[c] for c in ("rss", "cwd", "nice", "fds", "start_time")] == [None] * 5


def test_info_says_what_a_snapshot_lacks(held):
    row = ask(held, "snapshot", "SELECT pss, _error FROM process.info").one()
    assert row == {"pss": None, "_error": "not in the snapshot: smaps_rollup"}
    assert ask(held, "snapshot", "SELECT _error FROM process.info").one()["_error"] is None


# process.environ, limits, signals

@pytest.mark.parametrize("name", ["environ", "envs"])
def test_environ(held, kind, name):
    rows = ask(held, kind, "SELECT * FROM process.%s" % name)
    assert {row["name"]: row["value"] for row in rows} == held.truth["environ"]
    assert ask(held, kind, "SELECT value FROM process.%s WHERE name = 'ODD'" % name).one() == {
        "value": "a=b\nc ü"}


def test_limits(held, whole):
    rows = ask(held, whole, "SELECT * FROM process.limits").by("name")
    assert {name: [row["soft"], row["hard"]] for name, row in rows.items()
            if name in held.truth["limits"]} == held.truth["limits"]
    assert len(rows) == 16 and None not in rows
    assert rows["nofile"]["soft"] == 321 and rows["nofile"]["unit"] == "files"
    assert rows["nofile"]["title"] == "Max open files"


def test_signals(held, whole):
    rows = ask(held, whole, "SELECT * FROM process.signals").by("name")
    assert len(rows) > 60
    usr1, usr2, hup = (rows["SIG" + name] for name in ("USR1", "USR2", "HUP"))
    assert usr1["number"] == signal.SIGUSR1 and usr1["caught"] == 1 and usr1["blocked"] == 0
    assert usr2["blocked"] == usr2["pending"] == 1 and usr2["caught"] == 0
    assert hup["ignored"] == 1 and hup["pending"] == 0
    assert rows["SIGTERM"]["blocked"] == 0, "only other threads block it"


@pytest.mark.parametrize("table,fact", [
    ("limits", "limits"), ("io", "io"), ("signals", "status"), ("cgroups", "cgroup"),
    ("fds", "fd")])
def test_a_core_says_that_it_has_none(held, table, fact):
    answer = ask(held, "core", "SELECT * FROM process." + table)
    assert answer == []
    assert answer.notes == [
        "process.%s is empty: the core file does not contain '%s'" % (table, fact)]


# process.threads, cpu.tasks

def test_threads(held, kind):
    rows = ask(held, kind, "SELECT * FROM process.threads").by("tid")
    assert sorted(rows) == sorted([held.truth["pid"], *held.truth["tids"]])
    assert {tid for tid, row in rows.items() if row["main"]} == {held.truth["pid"]}
    assert {row["state"] for row in rows.values()} == {"idle"}
    if kind == "core":
        assert {row["_error"] for row in rows.values()} == {"not in the core file: status, wchan"}
        assert {row["nice"] for row in rows.values()} == {None}
        return
    for tid, row in rows.items():
        status = support.thread_status(held.truth["pid"], tid)
        assert row["name"] == status["Name"]
        assert row["nice"] == held.truth["nice"]
        assert row["priority"] == 20 + row["nice"] and row["policy"] == "other"
        assert row["cpus_allowed"] == status["Cpus_allowed_list"]
        assert row["cpu"] in held.truth["cpus"] and row["ns_tid"] == tid
        assert 0 < row["voluntary_switches"] <= int(status["voluntary_ctxt_switches"])
        assert row["involuntary_switches"] <= int(status["nonvoluntary_ctxt_switches"])
        assert held.process.create_time() - 1.5 < row["start_time"] < time.time()
        assert row["wchan"] and row["_error"] is None
    times = {thread.id: thread for thread in held.process.threads()}
    for tid, row in rows.items():
        assert abs(row["user_seconds"] - times[tid].user_time) <= 0.05
        assert abs(row["system_seconds"] - times[tid].system_time) <= 0.05


def test_one_thread(held, kind):
    tid = held.truth["tids"][1]
    assert ask(held, kind, "SELECT tid FROM process.threads WHERE tid = %d" % tid) == [{"tid": tid}]
    assert ask(held, kind, "SELECT tid FROM process.threads WHERE tid = 1") == []


def test_tasks(held, whole):
    rows = ask(held, whole, "SELECT * FROM cpu.tasks").by("tid")
    assert sorted(rows) == sorted([held.truth["pid"], *held.truth["tids"]])
    for tid, row in rows.items():
        with open("/proc/%d/task/%d/schedstat" % (held.truth["pid"], tid)) as file:
            run, wait, slices = map(int, file.read().split())
        assert 0 < row["run_seconds"] <= run / 1e9 and row["wait_seconds"] <= wait / 1e9
        assert 0 < row["timeslices"] <= slices
        assert abs(row["run_seconds"] - row["user_seconds"] - row["system_seconds"]) < 0.1


# process.io

def test_io(held, whole):
    row = ask(held, whole, "SELECT * FROM process.io").one()
    counters = held.process.io_counters()
    assert row["read_bytes"] <= counters.read_bytes and row["write_bytes"] <= counters.write_bytes
    assert 0 < row["read_chars"] <= counters.read_chars
    assert 500 < row["write_chars"] <= counters.write_chars
    assert 0 < row["read_calls"] <= counters.read_count
    assert 0 < row["write_calls"] <= counters.write_count


# process.cgroups

def test_cgroups(held, whole):
    rows = ask(held, whole, "SELECT * FROM process.cgroups")
    with open("/proc/%d/cgroup" % held.truth["pid"]) as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    assert [(row["hierarchy"], row["controllers"] or "", row["path"]) for row in rows] == [
        (int(number), controllers, path) for number, controllers, path in lines]
    for row in rows:
        check_group(row)


def check_group(row):
    """Against the files of the group, where they are mounted as they mostly are."""
    if row["hierarchy"]:
        folder = "/sys/fs/cgroup/%s%s/" % (row["controllers"], row["path"])
        names = {"memory_max": "memory.limit_in_bytes", "memory_current": "memory.usage_in_bytes"}
    else:
        folder = "/sys/fs/cgroup%s/" % row["path"]
        names = {"memory_max": "memory.max", "memory_current": "memory.current"}
    for column, name in names.items():
        if not os.path.exists(folder + name):
            assert row[column] is None
            continue
        with open(folder + name) as file:
            text = file.read().strip()
        value = None if text == "max" or int(text) > 1 << 62 else int(text)
        if column == "memory_max":
            assert row[column] == value
        else:
            assert value / 4 <= row[column] <= value * 4


# process.maps

def read_maps(pid, name="maps"):
    with open("/proc/%d/%s" % (pid, name)) as file:
        return file.read()


def test_maps(held, whole):
    rows = ask(held, whole, "SELECT start, end, size, perms, offset, dev, inode, path, deleted "
                            "FROM process.maps")
    lines = [line.split(None, 5) for line in read_maps(held.truth["pid"]).splitlines()]
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines):
        start, end = (int(part, 16) for part in line[0].split("-"))
        path = line[5] if len(line) > 5 else None
        if path == "[vsyscall]":
            continue
        assert (row["start"], row["end"], row["size"]) == (start, end, end - start)
        assert (row["perms"], row["offset"], row["path"]) == (line[1], int(line[2], 16), path)
        assert row["deleted"] == 0
        if int(line[4]):
            assert (row["dev"], row["inode"]) == (line[3], int(line[4]))
        else:
            assert (row["dev"], row["inode"]) == (None, None)


def test_maps_of_a_core(held):
    core = {row["start"]: row for row in
            ask(held, "core", "SELECT start, size, perms, path FROM process.maps")}
    live = ask(held, "process", "SELECT start, size, perms, path FROM process.maps "
                                "WHERE path LIKE '/%' AND perms LIKE 'rw%'")
    assert live
    for row in live:
        assert core[row["start"]]["path"] == row["path"]
        assert core[row["start"]]["perms"][:2] == row["perms"][:2]
    assert ask(held, "core", "SELECT DISTINCT rss, inode, _error FROM process.maps") == [
        {"rss": None, "inode": None, "_error": "not in the core file: smaps"}]


def test_maps_in_ram(held):
    rows = ask(held, "process", "SELECT path, rss, pss, shared, private, dirty, anonymous, swap, "
                                "vm_flags, _error FROM process.maps")
    grouped = held.process.memory_maps()
    total = {name: sum(getattr(entry, name) for entry in grouped)
             for name in ("rss", "pss", "anonymous", "swap")}
    for name, value in total.items():
        assert abs(sum(row[name] for row in rows) - value) <= value / 8 + 65536, name
    for row in rows:
        assert row["rss"] == row["shared"] + row["private"] and row["dirty"] <= row["rss"]
        assert row["_error"] is None and row["vm_flags"].split()[0] in ("rd", "ex", "wr", "mr")


def test_smaps_are_read_only_when_asked_for(held, tmp_path):
    """Reading them takes the kernel a walk over all pages."""
    def opened(sql):
        log = tmp_path / "log"
        os.system("strace -f -e trace=openat -o %s %s -t %d query \"%s\" >/dev/null 2>&1"
                  % (log, shlex.quote(support.BINARY), held.truth["pid"], sql))
        return log.read_text()

    if os.system("strace -V >/dev/null 2>&1"):
        pytest.skip("strace is not installed")
    assert "smaps" not in opened("SELECT start, path FROM process.maps")
    assert "smaps" in opened("SELECT start, rss FROM process.maps")


# process.fds

def test_fds(held, whole):
    rows = ask(held, whole, "SELECT * FROM process.fds").by("fd")
    truth, pid = held.truth, held.truth["pid"]
    assert set(rows) == {int(fd) for fd in os.listdir("/proc/%d/fd" % pid)}
    named = {name: rows[fd] for name, fd in truth["fds"].items()}
    folder = truth["argv"][1]

    file = named["file"]
    assert (file["kind"], file["path"], file["mode"]) == ("file", folder + "/file", "rw")
    assert (file["position"], file["size"], file["deleted"]) == (7, 500, 0)
    assert file["inode"] == os.stat(folder + "/file").st_ino and "cloexec" in file["flags"]
    gone = named["gone"]
    assert (gone["path"], gone["deleted"], gone["mode"]) == (folder + "/gone", 1, "w")
    assert "append" in gone["flags"].split(",")
    assert (named["folder"]["kind"], named["folder"]["path"]) == ("directory", folder)
    assert named["epoll"]["kind"] == "epoll" and named["epoll"]["size"] is None
    assert (named["null"]["kind"], named["null"]["path"]) == ("device", "/dev/null")
    pipe = named["pipe"]
    assert (pipe["kind"], pipe["mode"], pipe["peer"]) == (
        "pipe", "w", "%d (cat)" % truth["child"])
    assert pipe["path"] == os.readlink("/proc/%d/fd/%d" % (pid, pipe["fd"]))
    assert pipe["path"] == "pipe:[%d]" % pipe["inode"]
    assert {row["_error"] for row in rows.values()} == {None}


def test_sockets(held, whole):
    rows = ask(held, whole, "SELECT * FROM process.fds WHERE kind = 'socket'").by("fd")
    truth = held.truth
    named = {name: rows[fd] for name, fd in truth["fds"].items() if fd in rows}
    for name, protocol, state in [("listening", "tcp", "listen"), ("client", "tcp", "established"),
                                  ("server", "tcp", "established"), ("udp", "udp", None)]:
        row = named[name]
        assert (row["protocol"], row["state"]) == (protocol, state)
        assert [row["local_address"], row["local_port"]] == truth["addresses"][name]
    assert [named["client"]["remote_address"], named["client"]["remote_port"]] == (
        truth["addresses"]["peer"])
    assert named["listening"]["remote_address"] is None
    unix = named["unix"]
    assert (unix["protocol"], unix["type"], unix["state"]) == ("unix", "stream", "listen")
    assert unix["local_address"] == truth["addresses"]["unix"] and unix["local_port"] is None
    assert named["left"]["peer"] == named["right"]["peer"] == "itself"
    assert named["left"]["state"] == "established"


def test_sockets_as_psutil_sees_them(held):
    states = {"established": "ESTABLISHED", "listen": "LISTEN", None: "NONE"}
    seen = {connection.fd: connection for connection in held.process.connections("inet")}
    rows = ask(held, "process", "SELECT * FROM process.fds "
                                "WHERE protocol IN ('tcp', 'tcp6', 'udp', 'udp6')").by("fd")
    assert set(rows) == set(seen)
    for fd, connection in seen.items():
        row = rows[fd]
        assert (row["local_address"], row["local_port"]) == tuple(connection.laddr)
        assert (row["remote_address"], row["remote_port"]) == (
            tuple(connection.raddr) or (None, None))
        assert states[row["state"]] == connection.status


def test_one_descriptor(held, whole):
    fd = held.truth["fds"]["file"]
    assert ask(held, whole, "SELECT fd, kind FROM process.fds WHERE fd = %d" % fd) == [
        {"fd": fd, "kind": "file"}]


# Joins, and processes that end

def test_tables_of_one_instant_join(held, kind):
    rows = ask(held, kind, "SELECT t.tid, p.name FROM process.threads t "
                           "JOIN python.threads p USING (tid)")
    names = {row["tid"]: row["name"] for row in rows}
    assert set(names.values()) == {"MainThread", "worker-0", "worker-1", "worker-2"}
    assert names[held.truth["pid"]] == "MainThread"


TABLES = ["info", "environ", "limits", "threads", "maps", "fds", "io", "signals", "cgroups"]


@pytest.mark.parametrize("table", TABLES)
def test_a_process_that_is_gone(target, table):
    process = target("sleeper.py")
    with Session(process.pid) as session:
        process.__exit__()
        with pytest.raises(Error) as caught:
            session.query("SELECT * FROM process." + table)
    assert caught.value.code == NO_PROCESS
    assert "%d is gone" % process.pid in str(caught.value)


@pytest.mark.parametrize("sql", [
    "SELECT * FROM process.threads", "SELECT * FROM process.maps",
    "SELECT * FROM process.fds", "SELECT * FROM native.symbols",
    "SELECT * FROM generate_series(1, 3), process.info"])
def test_a_process_that_ends_meanwhile(target, sql):
    """Fewer rows or an error that says so; never a crash, never silence about it."""
    process = target("sleeper.py")
    with Session(process.pid) as session:
        try:
            rows = session.query(sql, on_row=lambda _: process.__exit__() or 0)
        except Error as error:
            assert error.code == NO_PROCESS and "gone" in str(error)
        else:
            assert rows
