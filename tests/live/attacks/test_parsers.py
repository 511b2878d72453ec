# SPDX-License-Identifier: GPL-3.0-or-later
"""Root reads debug information of another user that is made against libbfd and libdwarf. These run in a
child without rights; the dump is made all the same."""
import json
import os
import shutil
import signal
import subprocess
import threading

import pytest

import debug_sections as dwarf
import support
from environment import OK, wait_until
from files_support import (  # noqa: F401 (fixtures)
    FRAME, PYTHON, USER, Openings, folder, give, needs_root, program, run, theirs, tool)

pytestmark = needs_root

SOURCE = """
#include <unistd.h>
static inline __attribute__((always_inline)) int inlined(void)
{
	int result = pause();
	__asm__ volatile("");
	return result;
}
__attribute__((noinline)) int hold(void) { return inlined() + 1; }
int enter_and_hold(void) { return hold() + 1; }
"""
IN_LIBRARY = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
library.enter_and_hold()
"""


def make_library(theirs, *options):
    path = theirs / "libattack.so"
    (theirs / "attack.c").write_text(SOURCE)
    tool("cc", "-shared", "-fPIC", "-O1", "-fno-optimize-sibling-calls", *options, "-o", path,
         theirs / "attack.c")
    return give(path)


def library_with(theirs, **sections):
    path = make_library(theirs)
    dwarf.add_sections(path, **sections)
    return give(path)


def frames_of(process, library):
    """The library's frames as root sees them."""
    support.wait_for_sleep(process.pid, "pause", timeout=60)
    done = run("-t", process.pid, "debug", "--dump", "--native", "--json")
    assert done.returncode == OK, done
    return frames_in(done.stdout, library)


def frames_in(text, library):
    return [frame for thread in json.loads(text)["threads"] for frame in thread["frames"]
            if frame.get("module") == str(library)]


class Watched:
    """A command of root. Its child exists while the parser works."""

    def __init__(self, *words):
        self.process = subprocess.Popen([support.BINARY, *map(str, words)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.done = None
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        self.done = self.process.communicate()

    def parser(self):
        """The parser's rights according to the kernel, after it has dropped them."""
        found = {}

        def works():
            found.clear()
            for pid in support.children(self.process.pid):
                found.update(status_of(pid), pid=pid)
            return found.get("Seccomp") == "2" or self.process.poll() is not None

        wait_until(works, seconds=60)
        return found

    def end(self):
        self.thread.join(timeout=120)
        assert not self.thread.is_alive(), "the command does not end"
        assert self.process.returncode == OK, self.done
        return self.done[0]


def status_of(pid):
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8") as file:
            return {name: value.strip()
                    for name, _, value in (line.partition(":") for line in file)}
    except OSError:
        return {}


def assert_without_rights(status):
    assert status, "there is no child"
    assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
    assert status["Groups"] == "" and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0, name
    left = {os.path.basename(os.readlink("/proc/%d/fd/%s" % (status["pid"], fd))).split(":")[0]
            for fd in os.listdir("/proc/%d/fd" % status["pid"])}
    assert len(left) == 2 and "socket" in left, left


def test_honest_library(theirs):
    """Root sees the same as the owner, including inlined functions and lines."""
    library = make_library(theirs, "-g")
    binary = shutil.copy(support.BINARY, theirs / "probing")
    with program(IN_LIBRARY, str(library)) as process:
        cold, warm = (frames_of(process, library) for _ in range(2))
        assert [frame["func"] for frame in cold] == ["inlined", "hold", "enter_and_hold"]
        assert [frame["line"] for frame in cold] == [5, 9, 10]
        assert not any(frame.get("error") for frame in cold) and cold == warm
        owner = subprocess.run(
            [binary, "-t", str(process.pid), "debug", "--dump", "--native", "--json"], user=USER,
            group=USER, extra_groups=[], env=dict(os.environ, XDG_CACHE_HOME=str(theirs)), cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if b"ptrace_scope" in owner.stderr:
        pytest.skip("users may not read their own processes here")
    assert owner.returncode == OK, owner
    assert cold == frames_in(owner.stdout, library)


def test_name_that_is_a_long_way_off(theirs):
    """A form that says that the form follows, twenty million times: a recursion of libbfd 2.40, which ends
    with its stack."""
    library = library_with(
        theirs,
        debug_abbrev=dwarf.kind(1, dwarf.COMPILE_UNIT, 1, *dwarf.ALL_CODE) +
        dwarf.kind(2, dwarf.SUBPROGRAM, 0, (dwarf.NAME, dwarf.INDIRECT)) + b"\0",
        debug_info=dwarf.unit(dwarf.all_code(b"made.c") + dwarf.leb(2) +
                              dwarf.leb(dwarf.INDIRECT) * (20 << 20) +
                              dwarf.leb(dwarf.STRING) + b"far\0\0"),
        debug_line=dwarf.line_program(dwarf.place(4) + dwarf.ROW + dwarf.advance(4) + dwarf.END))
    with program(IN_LIBRARY, str(library)) as process:
        frames = frames_of(process, library)
    assert [frame["func"] for frame in frames] == ["hold", "enter_and_hold"]
    assert all(frame.get("error") in (None, "the parser of %s crashed (SIGSEGV)" % library)
               for frame in frames), frames


def unsorted_lines():
    """Rows that libbfd puts in their place by going through all others, for hours."""
    rows = 200000
    first = dwarf.place(4) + dwarf.advance(4) * rows
    between = b"".join(dwarf.place(9 + 40 * (i % 2)) + dwarf.ROW for i in range(rows))
    return {"debug_abbrev": dwarf.kind(1, dwarf.COMPILE_UNIT, 0, *dwarf.ALL_CODE) + b"\0",
            "debug_info": dwarf.unit(dwarf.all_code(b"made.c")),
            "debug_line": dwarf.line_program(first + between + dwarf.END)}


def test_lines_that_take_for_ever(theirs):
    library = library_with(theirs, **unsorted_lines())
    with program(IN_LIBRARY, str(library)) as process:
        support.wait_for_sleep(process.pid, "pause", timeout=60)
        command = Watched("-t", process.pid, "debug", "--dump", "--native", "--json")
        assert_without_rights(command.parser())
        frames = frames_in(command.end(), library)
    assert [frame["func"] for frame in frames] == ["hold", "enter_and_hold"]
    assert all("the parser of %s took over" % library in frame["error"] for frame in frames)


def test_parser_that_is_killed(theirs):
    """A target of the user nobody may kill it."""
    library = library_with(theirs, **unsorted_lines())
    with program(IN_LIBRARY, str(library)) as process:
        support.wait_for_sleep(process.pid, "pause", timeout=60)
        command = Watched("-t", process.pid, "debug", "--dump", "--native", "--json")
        os.kill(command.parser()["pid"], signal.SIGKILL)
        frames = frames_in(command.end(), library)
    assert [frame["func"] for frame in frames] == ["hold", "enter_and_hold"]
    assert all(frame["error"] == "the parser of %s was killed (SIGKILL)" % library
               for frame in frames)


def test_command_that_is_killed_leaves_no_parser(theirs):
    library = library_with(theirs, **unsorted_lines())
    with program(IN_LIBRARY, str(library)) as process:
        support.wait_for_sleep(process.pid, "pause", timeout=60)
        command = Watched("-t", process.pid, "debug", "--dump", "--native")
        parser = command.parser()["pid"]
        command.process.kill()
        wait_until(lambda: status_of(parser).get("State", "X")[0] in "XZ")
        command.thread.join()


def test_debug_information_that_names_a_file(theirs):
    """libbfd opens the named file, whatever it is."""
    library = library_with(
        theirs,
        debug_abbrev=dwarf.kind(1, dwarf.COMPILE_UNIT, 1, *dwarf.ALL_CODE) +
        dwarf.kind(2, dwarf.SUBPROGRAM, 0, (dwarf.NAME, dwarf.OTHER_FILE), (dwarf.LOW, dwarf.ADDRESS),
                   (dwarf.HIGH, dwarf.DATA8)) + b"\0",
        debug_info=dwarf.unit(dwarf.all_code(b"made.c") + dwarf.leb(2) + bytes(4 + 8) +
                              (1 << 40).to_bytes(8, "little") + b"\0"),
        debug_line=dwarf.line_program(dwarf.place(4) + dwarf.ROW + dwarf.advance(4) + dwarf.END),
        gnu_debugaltlink=b"other.debug\0" + bytes(range(20)))
    (theirs / "other.debug").write_bytes(b"anything")
    with program(IN_LIBRARY, str(library)) as process, \
            Openings(give(theirs / "other.debug")) as openings:
        frames = frames_of(process, library)
        assert not openings.opened()
    assert [frame["func"] for frame in frames] == ["hold", "enter_and_hold"]
    assert not any(frame.get("error") for frame in frames)


def test_python_whose_types_take_for_ever(theirs):
    path = theirs / "python"
    shutil.copy(os.path.realpath(PYTHON), path)
    dwarf.add_sections(
        path,
        debug_abbrev=dwarf.kind(1, dwarf.COMPILE_UNIT, 1, (dwarf.NAME, dwarf.STRING)) +
        dwarf.kind(2, dwarf.BASE_TYPE, 0) + b"\0",
        debug_info=dwarf.unit(dwarf.leb(1) + b"ceval.c\0" + dwarf.leb(2) * (200 << 20) + b"\0"))
    with program(FRAME, "a.py", python=give(path)) as process:
        command = Watched("-t", process.pid, "debug", "--dump")
        status = command.parser()
        if not status:
            pytest.skip("this Python is not in its own file")
        assert_without_rights(status)
        assert b"a.py" in command.end()
