# SPDX-License-Identifier: GPL-3.0-or-later
"""ipc.segments and ipc.rings: memory that processes share, and which reader of a ring has not read."""
import json
import os
import subprocess

import pytest

import support
from environment import wait_until

# Named as in vLLM, and laid out like its rings; nothing else of it is here.
QUEUES = """
import json, os, sys, time
from multiprocessing import resource_tracker, shared_memory

class ShmRingBuffer:
    def __init__(self, n_reader, max_chunk_bytes, max_chunks, name=None):
        self.n_reader, self.max_chunk_bytes, self.max_chunks = n_reader, max_chunk_bytes, max_chunks
        size = (max_chunk_bytes + 1 + n_reader) * max_chunks
        self.shared_memory = shared_memory.SharedMemory(create=name is None, size=size, name=name)
        if name:
            resource_tracker.unregister(self.shared_memory._name, "shared_memory")

    def flags(self, chunk):
        start = self.max_chunk_bytes * self.max_chunks + chunk * (1 + self.n_reader)
        return self.shared_memory.buf[start:start + 1 + self.n_reader]

class MessageQueue:
    def __init__(self, buffer, reader):
        self.buffer, self.local_reader_rank, self._is_writer, self.current_idx = buffer, reader, reader < 0, 0

    def acquire_write(self):
        while True:
            flags = self.buffer.flags(self.current_idx)
            if not flags[0] or all(flags[1:]):
                break
            time.sleep(0.001)
        for number in range(self.buffer.n_reader):
            flags[1 + number] = 0
        flags[0] = 1
        self.current_idx = (self.current_idx + 1) % self.buffer.max_chunks

    def acquire_read(self):
        while True:
            flags = self.buffer.flags(self.current_idx)
            if flags[0] and not flags[1 + self.local_reader_rank]:
                break
            time.sleep(0.001)
        flags[1 + self.local_reader_rank] = 1
        self.current_idx = (self.current_idx + 1) % self.buffer.max_chunks

def ready(number):
    open(os.path.join(sys.argv[1], "ready%d" % number), "w").close()

buffer = ShmRingBuffer(3, 100, 4)
pids = []
for number, reads in enumerate((4, 1, 3)):
    pid = os.fork()
    if not pid:
        queue = MessageQueue(ShmRingBuffer(3, 100, 4, buffer.shared_memory.name), number)
        for _ in range(reads):
            queue.acquire_read()
        ready(number)
        while not number:
            queue.acquire_read()
        time.sleep(100000)
    pids.append(pid)
queue = MessageQueue(buffer, -1)
with open(os.path.join(sys.argv[1], "pids"), "w") as file:
    json.dump([buffer.shared_memory.name] + pids, file)
for _ in range(4):
    queue.acquire_write()
queue.acquire_write()   # chunk 0 is free
queue.acquire_write()   # waits for reader 1
"""


def ask(pid, query):
    return subprocess.run([support.BINARY, "-t", str(pid), "query", "-f", "json", query], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def rows(pid, query):
    return json.loads(ask(pid, query).stdout)


@pytest.fixture(name="ring", params=support.one_per_version((3, 8)), ids=repr)
def started(request, tmp_path):
    script = tmp_path / "shm_broadcast.py"
    script.write_text(QUEUES)
    with support.Program([request.param.exe, str(script), str(tmp_path)], env=request.param.env) as program:
        try:
            wait_until(lambda: all((tmp_path / ("ready%d" % number)).exists() for number in range(3)))
            name, *readers = json.loads((tmp_path / "pids").read_text())
            wait_until(lambda: rows(program.pid, "SELECT current, unread FROM ipc.rings ORDER BY reader")[0]
                       == {"current": 1, "unread": 0})
            yield program.pid, name, readers
        finally:
            for pid in readers:
                os.kill(pid, 9)
            os.unlink("/dev/shm/" + name)


def test_the_reader_that_has_not_read(ring):
    writer, name, readers = ring
    found = rows(writer, "SELECT * FROM ipc.rings ORDER BY reader")
    assert [row["unread"] for row in found] == [0, 4, 2]
    for number, row in enumerate(found):
        assert (row["name"], row["writes"], row["own_reader"]) == (name, 1, None)
        assert (row["chunks"], row["chunk_bytes"], row["readers"], row["current"]) == (4, 100, 3, 1)
        assert (row["reader"], row["reader_pid"], row["writer_pid"]) == (number, readers[number], writer)
    assert [row["blocks"] for row in found] == [0, 1, 0]


def test_a_reader_sees_the_same(ring):
    writer, _, readers = ring
    found = rows(readers[1], "SELECT * FROM ipc.rings ORDER BY reader")
    mine = [row for row in found if row["writes"] == 0]
    assert [row["unread"] for row in mine] == [0, 4, 2] and [row["blocks"] for row in mine] == [0, 1, 0]
    for row in mine:
        assert (row["own_reader"], row["current"], row["writer_pid"]) == (1, 1, writer)


def test_who_waits_for_whom(ring):
    writer, name, readers = ring
    for waiter, peer, words in ((writer, readers[1], "readers of ring " + name),
                                (readers[0], writer, "a message in ring " + name)):
        [edge] = rows(waiter, "SELECT * FROM wait.edges")
        assert (edge["kind"], edge["peer_pid"], edge["waits_for"]) == ("ring", peer, words)
        assert (edge["all_known"], edge["endless"]) == (0, 1)
    [root] = rows(readers[0], "SELECT * FROM wait.roots")
    assert (root["root_pid"], root["steps"], root["circle"]) == (readers[1], 2, 0)
    assert root["chain"].count("(ring %s)" % name) == 2
    assert rows(readers[1], "SELECT * FROM wait.edges") == []


def test_segments_and_who_shares_them(ring):
    writer, name, readers = ring
    found = rows(writer, "SELECT * FROM ipc.segments WHERE name = '%s'" % name)
    assert sorted(row["peer_pid"] for row in found) == sorted(readers)
    for row in found:
        assert (row["kind"], row["deleted"]) == ("posix", 0) and row["size"] >= (100 + 4) * 4
        assert row["inode"] == os.stat("/dev/shm/" + name).st_ino


def test_without_shared_memory():
    for table, note in (("segments", b"shares no memory"), ("rings", b"no ShmRingBuffer")):
        done = ask(os.getpid(), "SELECT * FROM ipc.%s" % table)
        assert json.loads(done.stdout) == [] and note in done.stderr
