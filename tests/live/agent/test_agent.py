# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent in its process: its clients' rights, its costs, and that it never disturbs the program."""
import json
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

import agent
import support
from agent import Client, wait_until
from environment import FAILED, OK, PERMISSION
from faults import list_descriptors

LIBRARY = os.path.join(os.path.dirname(support.BINARY), "libprobing-agent.so")


@pytest.fixture
def loaded(target, probing):
    """loaded(MODE): a program with the agent, and the path of its socket."""

    def start(mode="idle", **options):
        process = target("evaluated.py", mode, **options)
        return process, agent.load(probing, process.pid)

    return start


def test_library_is_small_and_needs_only_an_old_libc():
    # What is loaded: the compiler's debug information in the file differs by a tenth between releases.
    sizes = subprocess.run(["size", LIBRARY], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()[1].split()
    assert int(sizes[0]) + int(sizes[1]) <= 400000, sizes
    dynamic = subprocess.run(["readelf", "-Wd", LIBRARY], stdout=subprocess.PIPE, check=True)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic.stdout.decode())
    assert needed == ["libc.so.6"]
    symbols = subprocess.run(["objdump", "-T", LIBRARY], stdout=subprocess.PIPE, check=True)
    text = symbols.stdout.decode()
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", text)}
    assert versions and max(versions) <= (2, 17), versions
    exported = [line.split()[-1] for line in text.split("\n") if " g " in line and ".text" in line]
    listed = re.findall(r"probing_\w+", (support.ROOT / "agent/agent.map").read_text())
    assert exported and set(exported) <= set(listed)


def test_status_stop_and_start_again(loaded, probing):
    process, path = loaded()
    before = agent.descriptors(process.pid)
    status = json.loads(probing(process.pid, "agent", "status", "--json").out)
    assert status["clients"] == 1 and status["running"] == 0 and status["python"][0] == "3"
    assert os.stat(path).st_mode & 0o7777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o7777 == 0o700
    assert agent.ours(process.pid) == ["probing-agent"]
    assert probing(process.pid, "inject").out.startswith("the agent: already loaded")
    assert probing(process.pid, "agent", "stop").code == OK
    wait_until(lambda: not agent.ours(process.pid))
    assert not os.path.exists(path)
    assert len(agent.descriptors(process.pid)) < len(before)
    assert probing(process.pid, "agent", "status").code == FAILED
    for _ in range(3):
        assert probing(process.pid, "eval", "1").out == "1\n"
        assert probing(process.pid, "eject").code == OK
        wait_until(lambda: not agent.ours(process.pid))


def test_stop_while_code_runs(loaded, probing):
    process, path = loaded()
    with Client(path) as client:
        client.send(agent.evaluation("print('begun')\nwhile True: pass"))
        assert client.receive() == (agent.STDOUT, b"begun")
        assert probing(process.pid, "eject").code == OK
        assert client.until(agent.DONE)[-1][1][:4] == struct.pack("<I", agent.INTERRUPTED)
    wait_until(lambda: not agent.ours(process.pid))


def test_idle_costs_nothing(loaded):
    """Two threads at most however many clients there are, and none of them is ever woken."""
    process, path = loaded()
    clients = [Client(path) for _ in range(6)]
    number = int(clients[0].evaluate("ends = os.pipe()\nends[1]")[1][agent.VALUE])
    for client in clients:
        client.send(agent.evaluation("os.read(ends[0], 1)"))
    wait_until(lambda: agent.ours(process.pid).count("probing-eval") == 6)
    # Another client would leave a thread of its own behind, so the test writes to the pipe itself.
    with open("/proc/%d/fd/%d" % (process.pid, number), "wb", buffering=0) as end:
        end.write(b"x" * 6)
    for client in clients:
        assert client.until(agent.DONE)[-1][0] == agent.DONE
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent", "probing-eval"])
    ours = [tid for tid, name in agent.tasks(process.pid).items() if name.startswith("probing-")]
    wait_until(lambda: all(agent.waits_for_others(process.pid, tid) for tid in ours))
    # All are still served, and the last one has the same thread for thread-local data.
    code = "import threading\nthreading.get_ident()"
    assert all(client.evaluate(code)[0] == agent.OK for client in clients)
    first = clients[-1].evaluate(code)[1]
    assert clients[-1].evaluate(code)[1] == first
    for client in clients:
        client.close()
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])


def resident(pid):
    """Resident bytes of a process: all, anonymous, and of the agent's library."""
    every = own = library = 0
    with open("/proc/%d/smaps" % pid, encoding="utf-8") as smaps:
        for line in smaps:
            if re.match("[0-9a-f]+-", line):
                path = line
            elif line.startswith("Anonymous:"):
                own += int(line.split()[1]) << 10
            elif line.startswith("Rss:"):
                every += int(line.split()[1]) << 10
                library += int(line.split()[1]) << 10 if "probing-agent" in path else 0
    return every, own, library


def test_memory_of_the_agent_itself(interpreter, target, probing):
    """With the pages of files, as of the interpreter itself, when it is loaded; without, when code was
    run."""
    process = target("evaluated.py", "idle", interpreter=interpreter)
    probing(process.pid, "debug", "--dump")
    before = resident(process.pid)
    path = agent.load(probing, process.pid)
    idle = resident(process.pid)
    assert idle[0] - before[0] <= 2 << 20, (before, idle)
    with Client(path) as client:
        assert client.evaluate("1 + 1")[0] == agent.OK
        used = resident(process.pid)
        support.report(
            "resident memory, %s: %d kB more with the agent, %d kB without files, %d kB of its "
            "library; %d and %d kB after the first code" % (
                interpreter, (idle[0] - before[0]) >> 10, (idle[1] - before[1]) >> 10, idle[2] >> 10,
                (used[0] - before[0]) >> 10, (used[1] - before[1]) >> 10))
        # Free-threaded builds give each thread a heap of its own.
        limit = 4 if interpreter.free_threaded else 2.5
        assert used[1] - before[1] <= limit * (1 << 20), (before, used)


def test_many_evaluations_do_not_grow_it(loaded, newest):
    process, path = loaded()
    code = "import threading\nclass A: pass\nprint(A())\n[A() for i in range(10)]"

    def some(count):
        for _ in range(count // 10):
            with Client(path) as client:
                for _ in range(10):
                    assert client.evaluate(code)[0] == agent.OK
        with Client(path) as client:  # of classes only the collector frees memory
            assert client.evaluate("import gc; gc.collect()")[0] == agent.OK

    some(support.count(2000, 5000))
    wait_until(lambda: len(agent.ours(process.pid)) == 1)
    before = agent.memory(process.pid), agent.descriptors(process.pid)
    some(support.count(3000, 10000))
    wait_until(lambda: len(agent.ours(process.pid)) == 1)
    assert agent.descriptors(process.pid) == before[1]
    # Without a GIL the collector runs later, and freed memory stays in the threads' heaps.
    assert agent.memory(process.pid) - before[0] < (8 if newest.free_threaded else 1) << 20


def test_an_evaluation_is_quick(loaded, probing):
    process, path = loaded()
    times = []
    for _ in range(20):
        start = time.monotonic()
        assert probing(process.pid, "eval", "1+1").out == "2\n"
        times.append(time.monotonic() - start)
    support.report("eval of 1+1, whole command: %.1f ms in the median" % (
        1000 * sorted(times)[10]))
    assert min(times) < 0.1  # beside others, most wait for a processor


def test_many_clients(loaded):
    process, path = loaded("busy")
    clients = [Client(path) for _ in range(15)]
    for i, client in enumerate(clients):
        client.send(agent.evaluation("import time\ntime.sleep(0.2)\nprint(%d)\n%d" % (i, i)))
    start = time.monotonic()
    for i, client in enumerate(clients):
        frames = client.until(agent.DONE)
        assert (agent.VALUE, b"%d" % i) in frames, frames
        assert b"".join(text for kind, text in frames if kind == agent.STDOUT) == b"%d\n" % i
    assert time.monotonic() - start < 60
    # One more client than the limit is refused with a message, and does not hurt the others.
    clients.append(Client(path))
    with Client(path, greet=False) as one_more:
        kind, text = one_more.receive()
        assert kind == agent.ERROR and b"clients" in text
        assert one_more.receive() is None
    assert all(client.evaluate("7")[1] == {agent.VALUE: b"7"} for client in clients)
    for client in clients:
        client.close()
    wait_until(lambda: len(agent.ours(process.pid)) == 1)


@pytest.mark.parametrize("ending", ["killed", "shut"])
def test_client_that_leaves_ends_its_code(loaded, probing, ending):
    process, path = loaded()
    code = "print('begun')\nimport time\nwhile True: time.sleep(0.001)"
    if ending == "killed":
        with subprocess.Popen([support.BINARY, str(process.pid), "eval", code],
                              stdout=subprocess.PIPE) as client:
            assert client.stdout.readline() == b"begun\n"
            client.kill()
    else:
        with Client(path) as client:
            client.send(agent.evaluation(code))
            client.receive()
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    assert probing(process.pid, "eval", "5").out == "5\n"


def test_client_that_does_not_read_blocks_nobody(loaded, probing):
    process, path = loaded("busy")
    with Client(path) as client:
        client.send(agent.evaluation("for i in range(10**6): print('x' * 1000)"))
        wait_until(lambda: "probing-eval" in agent.ours(process.pid))
        count = probing(process.pid, "eval", "count").out
        wait_until(lambda: probing(process.pid, "eval", "count").out != count)
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"], 30)
    # Output from the main thread never blocks: excess output is lost, and reported.
    with Client(path) as client:
        client.send(agent.evaluation("for i in range(10**4): print('x' * 1000)",
                                     flags=agent.ON_MAIN))
        count = probing(process.pid, "eval", "count").out
        wait_until(lambda: probing(process.pid, "eval", "count").out != count)
        last = client.until(agent.DONE)[-1]
        assert b"bytes of output were lost" in last[1], last


def test_a_request_at_a_time(loaded):
    _, path = loaded()
    with Client(path) as client:
        client.send(agent.evaluation("print('begun')\nimport time\n"
                                     "while True: time.sleep(0.001)"))
        assert client.receive() == (agent.STDOUT, b"begun")
        assert client.receive() == (agent.STDOUT, b"\n")
        client.send(agent.evaluation("1", request=2))
        kind, text = client.receive()
        assert kind == agent.ERROR and b"evaluates other code" in text
        client.send(agent.frame(agent.INTERRUPT))
        assert client.until(agent.DONE)[-1][1][:4] == struct.pack("<I", agent.INTERRUPTED)
        assert client.evaluate("3")[1] == {agent.VALUE: b"3"}


def test_a_request_behind_an_early_answer(loaded):
    """The agent gives up at a deadline while its thread still waits for the GIL: the next request waits its own time."""
    process, path = loaded("gil")

    def outcome(client):
        frames = client.until(agent.DONE)
        assert frames[-1][0] == agent.DONE, frames
        return (struct.unpack("<I", frames[-1][1][:4])[0],) + tuple(text for _, text in frames[:-1])

    with Client(path) as client:
        process.send(b"x")
        wait_until(lambda: client.evaluate("1", start_ms=200, total_ms=200)[0] != agent.OK)
        for code in ("first = 1", "second = 1"):
            client.send(agent.evaluation(code, start_ms=200))
            assert outcome(client) == (agent.NO_GIL,)
        client.send(agent.evaluation("third = 1", request=2) + agent.frame(agent.INTERRUPT))
        assert outcome(client) == (agent.INTERRUPTED,)
        client.send(agent.evaluation("4", request=3) + agent.evaluation("5", request=4))
        assert client.receive() == (agent.ERROR, b"this connection evaluates other code still")
        process.send(b"x")
        assert outcome(client) == (agent.OK, b"4")
        assert client.evaluate("[n in globals() for n in ('first', 'second', 'third')]")[1] == {
            agent.VALUE: b"[False, False, False]"}
    # Code that was interrupted has an answer before it has ended, too.
    with Client(path) as client:
        client.send(agent.evaluation("try:\n while True: pass\nexcept KeyboardInterrupt:\n __import__('time').sleep(.5)",
                                     start_ms=60000, total_ms=300))
        assert outcome(client) == (agent.TIMED_OUT,)
        assert client.evaluate("6")[1] == {agent.VALUE: b"6"}


def test_a_client_that_leaves_takes_its_next_request_along(loaded, probing):
    process, path = loaded("gil")
    with Client(path) as client:
        process.send(b"x")
        wait_until(lambda: client.evaluate("1", start_ms=200, total_ms=200)[0] != agent.OK)
        client.send(agent.evaluation("second = 1"))
    process.send(b"x")
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    assert probing(process.pid, "eval", "'second' in globals()").out == "False\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_other_users_are_refused(loaded, tmp_path):
    """By the mode of the file and, where that is changed, by their number."""
    process, path = loaded()
    script = ("import os, socket\nos.setgid(65534)\nos.setuid(65534)\ns = socket.socket(1)\n"
              "try:\n    s.connect(%r)\nexcept PermissionError:\n    print('refused')\n"
              "else:\n    s.settimeout(30)\n    s.send(b'x')\n"
              "    print('closed' if not s.recv(1) else 'open')\n" % path)
    command = ["/usr/bin/python3", "-c", script]
    assert subprocess.check_output(command) == b"refused\n"
    folder = os.path.dirname(path)
    try:
        os.chmod(folder, 0o711)
        os.chmod(path, 0o666)
        for _ in range(3):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False)
            assert done.stdout == b"closed\n" or b"Error: " in done.stderr, done
    finally:
        os.chmod(folder, 0o700)
    with Client(path) as client:
        assert client.evaluate("1")[0] == agent.OK


def test_versions_are_agreed_upon(loaded):
    _, path = loaded()
    with Client(path, greet=False) as client:
        client.send(agent.greeting(1, 7))
        assert client.receive()[0] == agent.HELLO_REPLY
    with Client(path, greet=False) as client:
        client.send(agent.greeting(2, 7))
        kind, text = client.receive()
        assert kind == agent.ERROR and b"version 1" in text
        assert client.receive() is None
    with Client(path, greet=False) as client:
        client.send(agent.evaluation("1"))
        kind, text = client.receive()
        assert kind == agent.ERROR and b"greeted first" in text


def test_garbage(loaded, probing):
    process, path = loaded()
    seed = int.from_bytes(os.urandom(4), "little")
    chance = random.Random(seed)
    for _ in range(support.count(300, 5000)):
        with Client(path, greet=chance.random() < 0.7) as client:
            data = bytes(chance.randrange(256) for _ in range(chance.randrange(64)))
            if chance.random() < 0.7:
                data = struct.pack("<IHH", len(data) + chance.choice((0, 0, 1, -1)) & 0xffffffff,
                                   chance.choice((0, 1, 2, 3, 4, 6, 7, 64)), 1) + data
            try:
                client.send(data)
            except OSError:
                pass  # it was cut off
    with Client(agent.load(probing, process.pid)) as client:
        client.send(struct.pack("<IHH", (4 << 20) + 1, agent.EVAL, 1))
        kind, text = client.receive()
        assert kind == agent.ERROR and b"too large" in text
    process.send(b"x")
    assert process.line() == "awake", seed


def links_of(pid):
    """The links of its descriptors, except those closed meanwhile."""
    return [entry.split(": ", 1)[1] for entry in list_descriptors(Path("/proc/%d" % pid))]


def test_forked_children_have_no_agent(interpreter, loaded, probing):
    process, path = loaded(interpreter=interpreter)
    inode = os.readlink("/proc/%d/fd/%d" % (process.pid, max(agent.descriptors(process.pid))))
    with Client(path) as client:
        code = ("import os\nr, w = os.pipe()\n"
                "child = os.fork()\n"
                "if child == 0:\n    os.read(r, 1)\n    os._exit(7)\nchild")
        outcome, texts = client.evaluate(code)
        assert outcome == agent.OK, texts
        child = int(texts[agent.VALUE])
        try:
            wait_until(lambda: inode not in links_of(child) and
                       not any("socket:" in link for link in links_of(child)))
            assert agent.ours(child) == ["probing-eval"]  # the thread that forked
            wait_until(lambda: int(support.thread_status(child)["SigBlk"], 16) == 0)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        assert client.evaluate("os.write(w, b'x'); os.waitpid(child, 0)[1] >> 8")[1] == {
            agent.VALUE: b"7"}
        # A fork child that leaves the code ends, and does not talk to our client.
        outcome, texts = client.evaluate("print('both' if os.fork() else '')\nos.wait()[1]")
        assert outcome == agent.OK and texts[agent.STDOUT] == b"both\n", texts
    assert probing(process.pid, "eval", "'parent'").out == "'parent'\n"


def test_exec_and_exit(loaded, probing, tmp_path):
    process, path = loaded()
    done = probing(process.pid, "eval", "--timeout", "2",
                   "import os, sys\nos.execv('/bin/sleep', ['sleep', '600'])")
    assert done.code != OK
    wait_until(lambda: len(agent.tasks(process.pid)) == 1)
    assert [fd for fd in agent.descriptors(process.pid) if fd > 2] == []
    other, path = loaded()
    assert probing(other.pid, "eval", "import atexit\n"
                   "atexit.register(lambda: os.write(1, b'bye\\n')) and None").code == OK
    other._process.stdin.close()
    other._process.stdin = None
    assert other.line() == "bye"
    assert other._process.wait(30) == 0
    assert not os.path.exists(path)
    third, path = loaded()
    done = probing(third.pid, "eval", "--timeout", "2", "import os\nos._exit(9)")
    assert done.code != OK and third._process.wait(30) == 9


def test_signals_go_where_they_always_went(loaded, probing):
    """All signals are blocked in our threads, except those of their own faults."""
    process, path = loaded()
    with Client(path) as client:
        client.evaluate("1")
        # The C library blocks all for as long as it starts a thread.
        wait_until(lambda: all(agent.waits_for_others(process.pid, tid)
                               for tid, name in agent.tasks(process.pid).items()
                               if name.startswith("probing-")))
        for tid, name in agent.tasks(process.pid).items():
            blocked = int(support.thread_status(process.pid, tid)["SigBlk"], 16)
            if name.startswith("probing-"):
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM,
                               signal.SIGPIPE, signal.SIGRTMIN + 1):
                    assert blocked >> number - 1 & 1, (name, number)
                assert not blocked >> signal.SIGSEGV - 1 & 1
            else:
                assert blocked == 0


def test_descriptors_stay_out_of_the_way(loaded):
    """Programs that close and open 0, 1 and 2 count on getting the lowest numbers."""
    process, _ = loaded()
    assert [fd for fd in agent.descriptors(process.pid) if 2 < fd < 100] == []


CLOSES = """
import os, tempfile
os.closerange(3, 4096)
files = []
while not files or files[-1] < 300:
    files.append(os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR))
    os.write(files[-1], b"mine")
"""


@pytest.mark.parametrize("who", ["the program", "code", "code on main"])
def test_a_program_that_closes_what_is_not_its_own(target, probing, who):
    """The agent reopens what it needs, and leaves the numbers to their new owners."""
    process = target("obeys.py")
    path = agent.load(probing, process.pid)
    with Client(path) as client:
        if who == "the program":
            assert client.evaluate("5")[1] == {agent.VALUE: b"5"}
            process.send(b"exec(%r)\n" % CLOSES)
            assert process.line() == "done"
        elif who == "code":
            client.send(agent.evaluation(CLOSES + "print(files)"))
            # A client that connected before the first file is opened would be closed too.
            wait_until(lambda: any(re.match("3: .*/#", entry) for entry in
                                   list_descriptors(Path("/proc/%d" % process.pid))))
        else:
            client.send(agent.evaluation(CLOSES + "print(files)", flags=agent.ON_MAIN))
            while not select.select([client.socket], [], [], 0.1)[0]:  # until it has come by
                process.send(b"1\n")
                assert process.line() == "done"
        done = probing(process.pid, "eval", "1")
        assert done.out == "1\n", done
        assert not client.until(agent.DONE)[-1]
    done = probing(process.pid, "eval", "len(files), {os.pread(f, 9, 0) for f in files}")
    assert done.out.endswith(", {b'mine'})\n"), done
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    assert probing(process.pid, "eject").code == OK
    assert not any("socket:" in link for link in links_of(process.pid))


CLOSES_SOCKETS = """
import os
for f in os.listdir("/proc/self/fd"):
    if int(f) >= 100:
        try:
            if os.readlink("/proc/self/fd/" + f).startswith("socket:"):
                os.close(int(f))
        except OSError:
            pass
"""


def test_a_socket_that_is_closed_is_waited_for(target, probing):
    """Between two sockets the agent has none: a client of that moment waits for the next one."""
    process = target("obeys.py")
    agent.load(probing, process.pid)
    for _ in range(support.count(40, 300)):
        process.send(b"exec(%r)\n" % CLOSES_SOCKETS)
        assert process.line() == "done"
        commands = [subprocess.Popen([support.BINARY, str(process.pid), "eval", "--no-inject", "1"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    for _ in range(3)]
        for command in commands:
            assert command.communicate(timeout=60) == (b"1\n", b"")


def test_a_file_that_is_removed(target, probing):
    """A cleaner of /tmp removed it: the command that needs it makes the agent create it again."""
    process = target("obeys.py")
    path = agent.load(probing, process.pid)
    for _ in range(3):
        os.unlink(path)
        done = probing(process.pid, "agent", "status")
        assert done.code == FAILED and "was removed" in done.err and "inject" in done.err, done
        assert probing(process.pid, "eval", "3").out == "3\n"
        os.unlink(path)
        assert probing(process.pid, "inject").code == OK
        assert probing(process.pid, "agent", "status").code == OK
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    os.unlink(path)
    assert probing(process.pid, "eject").code == OK
    assert agent.ours(process.pid) == []


@pytest.mark.parametrize("command", ["inject", "eject"])
def test_what_a_killed_program_has_left(command, target, probing):
    """A killed program's socket is removed when another agent starts or ends; live or young ones, and
    other files, stay."""
    old, young, living, other = (target("obeys.py") for _ in range(4))
    paths = {p: agent.load(probing, p.pid) for p in (old, young, living)}
    for process in old, young:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    folder = os.path.dirname(paths[old])
    text = os.path.join(folder, "agent-%d.text" % old.pid)
    with open(text, "w", encoding="utf-8"):
        pass
    try:
        if command == "eject":
            assert probing(other.pid, "inject").code == OK
        for path in paths[old], paths[living], text:
            os.utime(path, (1000, 1000))
        assert os.path.exists(paths[old])
        assert probing(other.pid, command).code == OK
        assert not os.path.exists(paths[old])
        assert all(os.path.exists(path) for path in (paths[young], paths[living], text))
        assert probing(living.pid, "eval", "1").out == "1\n"
    finally:
        os.unlink(text)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_program_that_becomes_another_user(target, probing, somebody):
    process = target("obeys.py")
    path = agent.load(probing, process.pid)
    process.send(b"os.setgid(%d); os.setuid(%d)\n" % (somebody, somebody))
    assert process.line() == "done"
    assert {support.thread_status(process.pid, tid)["Uid"] for tid in agent.tasks(process.pid)} == {
        "\t".join(4 * [str(somebody)])}
    done = probing(process.pid, "eval", "os.getuid()")
    assert done.out == "%d\n" % somebody, done
    # Root comes by the old socket; for the new user there is another from then on.
    other = json.loads(probing(process.pid, "agent", "status", "--json").out)["socket"]
    assert os.stat(other).st_uid == somebody and other != path
    with Client(other) as client:
        assert client.evaluate("7")[0] == agent.OK
    assert probing(process.pid, "eject").code == OK
    assert not os.path.exists(other)
    os.unlink(path)  # the new user may not do it


def test_stopped_process(loaded, probing):
    process, _ = loaded()
    os.kill(process.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: support.thread_status(process.pid)["State"][0] == "T")
        done = probing(process.pid, "eval", "1")
        assert done.code == 5 and "does not answer" in done.err and "stopped" in done.err, done
    finally:
        os.kill(process.pid, signal.SIGCONT)
    wait_until(lambda: probing(process.pid, "eval", "1").out == "1\n")


@pytest.mark.parametrize("interpreter", support.one_per_version(first=(3, 7)), ids=repr)
def test_subinterpreters(interpreter, tmp_path, probing):
    """Code is evaluated in the main interpreter, whatever the others do."""
    script = tmp_path / "interpreters.py"
    script.write_text(
        "import os, sys, threading\n"
        "name = {12: '_xxsubinterpreters'}.get(sys.version_info[1], '_interpreters' if\n"
        "    sys.version_info >= (3, 13) else '_xxsubinterpreters')\n"
        "try:\n    module = __import__(name)\n"
        "except ImportError:\n    os.write(1, b'none\\n'); sys.exit()\n"
        "mine = 'first'\n"
        "code = 'import time\\nwhile True: time.sleep(0.001)'\n"
        "one = module.create()\n"
        "run = getattr(module, 'run_string', None) or module.exec\n"
        "threading.Thread(target=run, args=(one, code), daemon=True).start()\n"
        "os.write(1, b'ready\\n'); os.read(0, 1)\nos._exit(0)\n")
    with support.Target(interpreter, script) as process:
        if process.line() == "none":
            pytest.skip("it has no module for that")
        done = probing(process.pid, "eval", "mine")
        assert done.out == "'first'\n", done
        for _ in range(20):
            assert probing(process.pid, "eval", "print(1)").out == "1\n"
