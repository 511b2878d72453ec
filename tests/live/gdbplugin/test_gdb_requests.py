# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin's requests to a gdbserver: each takes a round trip to its machine."""

import collections
import os
import re
import shutil

import debuggers
import own_gdb
import pytest
import stub_line
import support
from debuggers import gdb, known, lldb, sleeper  # noqa: F401 (fixtures)

pytestmark = [debuggers.needs_gdbserver,
              pytest.mark.skipif(own_gdb.stands_in,
                                 reason="a gdb of another version makes other requests")]
STACKS = support.ROOT / "tests" / "bench" / "stacks.py"


def test_a_stack_takes_few_requests_to_a_gdbserver(sleeper):
    _, sent = requests(sleeper, "probing backtrace")
    # It took 480 when keys of dicts were compared one by one and all files were checked.
    assert any(packet.startswith("m7f") for packet in sent) and len(sent) < 140, len(sent)


def requests(process, *commands):
    """A session behind a gdbserver, and the requests of its last command."""
    with debuggers.gdbserver(process.pid) as address:
        session = gdb("target remote " + address, *commands[:-1], "set debug remote 1", commands[-1],
                      "set debug remote 0", arguments=[os.readlink("/proc/%d/exe" % process.pid)])
    return session, re.findall(r"Sending packet: \$(\S+)", session.out + session.err)


def test_frames_are_read_many_at_once(target, known):
    process = target("deep.py", "2000", "blocked", interpreter=known)
    session, sent = requests(process, "probing query SELECT max(depth) FROM python.stacks")
    assert re.search(r"^ *20\d\d$", session.out, re.M), session
    lengths = [int(packet.split(",")[1].split("#")[0], 16) for packet in sent if packet[0] == "m"]
    # One after the other they take a page at most for each request.
    assert sum(length for length in lengths if length > 5000) > 2000 * 50, lengths


def test_a_file_with_bytes_that_are_escaped_takes_no_copy(target, known):
    """gdb's own command makes one, for which we would load tempfile."""
    process = target("sleeper.py", interpreter=known, env={"ODD": "}#$*]\n"})
    with debuggers.gdbserver(process.pid) as address:
        session = gdb("target remote " + address, "probing query -f json SELECT value FROM "
                      "process.environ WHERE name = 'ODD'",
                      "python import sys; print('copied', 'tempfile' in sys.modules)",
                      arguments=[os.readlink("/proc/%d/exe" % process.pid)])
    assert '[{"value":"}#$*]\\n"}]' in session.out, session
    assert "copied False" in session.out, session


def kinds(sent):
    """{kind of request: how many}"""
    return collections.Counter(re.match(r"vFile:[a-z]+|[a-zA-Z]", packet).group(0)
                               for packet in sent)


MARKS = {gdb: "maintenance packet ", lldb: "process plugin packet send "}


def far_requests(debugger, process, *commands):
    """A session on a slow line, and the commands' requests: large pieces are read there."""
    connect = "target remote " if debugger is gdb else "gdb-remote "
    mark = MARKS[debugger] + stub_line.MARK
    with debuggers.gdbserver(process.pid) as address, stub_line.line(address, 0.02) as line:
        # gdb's own: it uses files of this machine as those of the process.
        first = ["set sysroot /"] if debugger is gdb else []
        session = debugger(*first, connect + line.address, mark, *commands, mark,
                           arguments=[os.readlink("/proc/%d/exe" % process.pid)])
    return session, line.sent


@pytest.fixture
def eight(target, newest):
    """8 threads, 50 frames each, that sleep."""
    return target(STACKS, "8", "50", "idle", interpreter=newest)


def test_all_threads_take_few_requests(eight):
    session, sent = far_requests(gdb, eight, "probing backtrace --all")
    assert sum(int(n) for n in re.findall(r"(\d+) calls deep", session.out)) >= 8 * 45, session
    assert not [packet for packet in sent if packet.startswith("m0,")], sent
    # It took 125: modules, types and keys were read that nothing depends on. Of files these are
    # "maps", and "syscall" of each thread.
    assert kinds(sent)["vFile:open"] <= 10 and len(sent) <= 114, kinds(sent)


def test_one_thread_takes_few_requests(eight):
    session, sent = far_requests(gdb, eight, "probing backtrace")
    assert re.search(r"\d+ calls deep", session.out), session
    # It took 78 to 98: without a selected frame gdb was asked for its own one. Some 10 check if the thread
    # runs the state.
    assert len(sent) <= 76, kinds(sent)


@debuggers.needs_lldb
def test_lldb_takes_few_requests(eight):
    session, sent = far_requests(lldb, eight, "probing backtrace --all")
    assert sum(int(n) for n in re.findall(r"(\d+) calls deep", session.out)) >= 8 * 45, session
    assert len(sent) <= 80, kinds(sent)


def test_gdb_knows_whose_files_it_reads_afterwards(sleeper):
    """The stub reads files as it or as the process sees them, depending on the last request."""
    path = shutil.which("true")
    session, sent = far_requests(gdb, sleeper, "symbol-file target:" + shutil.which("cat"),
                                 "probing backtrace", "symbol-file target:" + path)
    chosen = [packet.split(":")[-1] for packet in sent[:index_of_open(sent, path)]
              if packet.startswith("vFile:setfs:")]
    assert chosen[-1] == "%x" % sleeper.pid and "0" in chosen, session


def index_of_open(sent, path):
    start = "vFile:open:%s," % path.encode().hex()
    return next(i for i, packet in enumerate(sent) if packet.startswith(start))
