# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: many injections in a row, into fresh processes and into the same one. Nothing grows."""
import ctypes
import os

import environment
import faults
import support
from environment import OK
from faults import Cell, Checked

FRESH = support.count(20, 1000)
AGAIN = support.count(50, 500)


class Reaper:
    """Ends processes left by ended commands: as their new parent we would see them."""

    SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER

    def __enter__(self):
        ctypes.CDLL(None).prctl(self.SUBREAPER, 1)
        return self

    def __exit__(self, *_):
        ctypes.CDLL(None).prctl(self.SUBREAPER, 0)


def own_children():
    with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as file:
        return set(file.read().split())


def leftovers():
    """Possible leftovers of injection outside of the target, except the folders of users."""
    return {os.path.join(folder, name) for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run")
            if os.path.isdir(folder) for name in os.listdir(folder)
            if name.startswith("probing-") and name[8:9].isdigit() and not name[8:].isdigit()}


def test_many_fresh_processes(build, newest):
    """Each is loaded into once, and ends as it would have."""
    cell = Cell("fresh processes, %d in a row" % FRESH)
    script, children, files = faults.PROGRAMS / "fault_python.py", own_children(), leftovers()
    program, library = build.program("fault_heap"), build.library()
    with Reaper():
        for number in range(FRESH):
            target = Checked(program, "heap", 2) if number % 2 else Checked(
                script, "idle", before=[newest.exe], env=newest.env)
            with target:
                faults.inject_once(cell, build, target, library=library)
        assert own_children() == children
    # Of tests beside this one there may be something for a moment.
    environment.wait_until(lambda: leftovers() <= files, 60)
    cell.assert_loaded()
    cell.passed()


def memory(pid):
    """(bytes mapped, bytes resident)"""
    with open("/proc/%d/statm" % pid, encoding="ascii") as file:
        size, resident = file.read().split()[:2]
    return int(size) * 4096, int(resident) * 4096


def test_in_and_out_again(build):
    """The library is unloaded by its own program: its maps, threads and memory are as before."""
    cell = Cell("in and out of one process, %d times" % AGAIN)
    library = build.library()
    with Checked(build.program("fault_places"), "unload", library) as target:
        sizes = []
        for _ in range(AGAIN):
            target.wait_for_progress()
            before = faults.look_settled(target.pid)
            code, out, err = faults.inject(target.pid, library, "--symbol", "fault_touch")
            cell.note(code, out, err, 0)
            assert code == OK and not out["already"], err
            faults.wait_until_same(before)
            target.shared[target.SENT] = 1
            environment.wait_until(lambda: not target.shared[target.SENT])
            assert not faults.is_mapped(target.pid, library)
            sizes.append(memory(target.pid))
    early, late = sizes[4], sizes[-1]
    assert late[0] == early[0] and late[1] - early[1] < 100 << 10, sizes
    cell.assert_loaded()
    cell.passed()


def test_agent_in_and_out_again(build, newest, probing):
    """It is started and stopped again; its threads and descriptors go, and nothing grows."""
    cell = Cell("agent started and stopped, %d times" % AGAIN)
    script = faults.PROGRAMS / "fault_python.py"
    with Checked(script, "idle", before=[newest.exe], env=newest.env) as target:
        before, sizes = faults.look_settled(target.pid), []
        for _ in range(AGAIN):
            target.wait_for_progress()
            for words in (["inject"], ["eval", "1"], ["agent", "stop"]):
                done = probing(target.pid, *words)
                assert done.code == OK, done
            cell.run("loaded")
            faults.wait_until_same(before)
            sizes.append(memory(target.pid))
    early, late = sizes[4], sizes[-1]
    # Python asks for memory by the MiB.
    assert late[0] - early[0] < 2 << 20 and late[1] - early[1] < 2 << 20, sizes
    cell.passed()
