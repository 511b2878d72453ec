# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks of another user's process through values and names that root reads: C files of Cython, objects
that imitate greenlets or frames of pandas, command lines and stacks that `list` recognises."""
import json
import os
import resource
import shutil
import signal
import subprocess

import pytest

import support
from environment import OK
from files_support import (  # noqa: F401 (fixtures)
    AS_USER, PYTHON, USER, Openings, folder, give, needs_root, program, run, theirs, write)

pytestmark = needs_root
EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\t\r"  # terminal control characters
MEMORY = 2 << 30  # that the command may have
LINE = b'  /* "secret.pyx":3 */\n'


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def harmless(text):
    for byte in b"\x1b\x07\x08\x00\r":
        assert bytes([byte]) not in text, text
    assert "\u202e" not in text.decode(), text
    return text.decode()


def asked(*words):
    """The output; root's command succeeds and prints no terminal control characters."""
    done = run(*words, preexec_fn=limited)
    assert done.returncode == OK and len(done.stdout) < 4 << 20, done
    harmless(done.stderr)
    return harmless(done.stdout)


# C files of Cython

CODE = """#include <unistd.h>
%s
int __pyx_f_5cymod_leaf(int fd) { char c; return (int)read(fd, &c, 1); }
"""
CALL = """
import ctypes, sys
print("ready", flush=True)
ctypes.CDLL(sys.argv[1]).__pyx_f_5cymod_leaf(0)
"""


@pytest.fixture
def compiled(theirs):  # noqa: F811
    """(C file, a library of it with debug information), both of the user."""
    source, library = theirs / "cymod.c", theirs / "cymod.so"
    source.write_text(CODE % '/* "fine.pyx":7 */')
    subprocess.run(["gcc", "-shared", "-fPIC", "-g", "-O0", "-o", library, source], check=True)
    give(source)
    give(library)
    return source, library


def frames_of(library, *more):
    with program(CALL, str(library)) as process:
        support.wait_for_sleep(process.pid, "pipe_read")
        found = json.loads(asked(process.pid, "bt", "--native", "--json", *more))
        asked(process.pid, "bt", "--native", "--source")
        return [frame for frame in found["threads"][0]["frames"] if frame["func"] == "cymod.leaf"]


def test_a_c_file_as_it_should_be(compiled):
    frame, = frames_of(compiled[1])
    assert (os.path.basename(frame["file"]), frame["line"]) == ("fine.pyx", 7)


def test_a_c_file_that_is_a_link_to_a_secret(compiled, folder):  # noqa: F811
    source, library = compiled
    secret = write(folder / "secret.c", LINE * 10, 0o600)
    source.unlink()
    os.symlink(secret, source)
    os.lchown(source, USER, USER)
    with Openings(secret) as openings:
        frame, = frames_of(library)
        assert not openings.opened()
    assert frame["file"] == str(source)


def test_a_c_file_that_names_a_secret(compiled, folder):  # noqa: F811
    """Lines of which root would print with --source."""
    source, library = compiled
    secret = write(folder / "secret.pyx", b"only root may read this line\n" * 10, 0o600)
    source.write_text(CODE % ('/* "%s":3 */' % secret))
    give(source)
    with Openings(secret) as openings:
        frame, = frames_of(library)
        assert not openings.opened()
    assert frame["file"] == str(secret) and not frame.get("source")


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "huge", "one line"])
def test_a_c_file_that_is_none(compiled, kind):
    source, library = compiled
    source.unlink()
    if kind == "fifo":
        os.mkfifo(source)
    elif kind == "folder":
        source.mkdir()
    elif kind == "device":
        os.symlink("/dev/zero", source)
    else:
        source.write_bytes(b"/* \"" + b"x" * (1 << 24) if kind == "one line" else b"")
        if kind == "huge":
            os.truncate(source, 1 << 40)
    os.chown(source, USER, USER, follow_symlinks=False)
    frame, = frames_of(library)
    assert frame["file"] == str(source)


def test_names_of_cython_that_a_terminal_obeys(compiled):
    source, library = compiled
    source.write_text(CODE % ('/* "%s.pyx":7 */' % EVIL.replace("\r", "")), newline="\n")
    give(source)
    frame, = frames_of(library)
    assert frame["line"] == 7


# Objects that claim to be others

FAKES = """
import sys, types
EVIL, COUNT = sys.argv[1], int(sys.argv[2])
def generate(depth):
    kept = [depth]
    yield from (generate(depth - 1) if depth else kept)
code = generate.__code__
generate.__code__ = code.replace(co_name=EVIL, co_filename=EVIL)
Lie = type("greenlet", (object,), {"__slots__": tuple("abcdefgh"), "__module__": "greenlet"})
Other = type("Greenlet", (Lie,), {"__module__": "gevent._gevent_cgreenlet"})
made = []
for number in range(COUNT):
    each = (Lie if number % 2 else Other)()
    generator = generate(20)
    next(generator)
    each.a, each.b, each.c, each.d = generator.gi_frame, each, generator, made
    made.append((each, [each, generator]))
print("ready", flush=True)
sys.stdin.read()
"""
FRAMES = """
import sys, types
EVIL = sys.argv[1]
def made(module, qualname, **attributes):
    def text(self): raise AssertionError
    text.__module__, text.__qualname__ = module, qualname + ".__repr__"
    return type(qualname, (object,), {"__repr__": text, "__module__": "pandas" + EVIL})
Frame = made("pandas.core.frame", "DataFrame")
Series = made("pandas.core.series", "Series")
Index = made("pandas.core.indexes.base", "Index")
Frame.shape = property(lambda self: 1 / 0)
Manager, Block, BlockPlacement = (type(name, (object,), {}) for name in (
    "BlockManager", "Block", "BlockPlacement"))
def index(**attributes):
    found = Index()
    found.__dict__.update(attributes)
    return found
def frame(kind, blocks, *axes):
    found, manager = kind(), Manager()
    manager.blocks, manager.axes = blocks, list(axes)
    found.__dict__.update(_mgr=manager, _name=EVIL)
    return found
def block(placement, values):
    found = Block()
    found._mgr_locs, found.values = placement, values
    return found
wide, small = index(_range=range(1 << 60)), index(_range=range(3))
Placed = type("BlockPlacement", (object,), {"__slots__": ("x",)})
place = Placed()
place.x = slice(0, 1 << 62, 1)
circle = index()
circle.__dict__.update(_data=circle)
many = tuple(block(place, []) for _ in range(3000)) * 400
lies = {
    "wide": frame(Frame, (block(place, []),), wide, wide),
    "backward": frame(Frame, (), index(_range=range(1 << 60, -(1 << 60), -3)), small),
    "stepless": frame(Frame, (block(place, EVIL),), small, index(_range=slice(0, 0, 0))),
    "empty": frame(Frame, ()), "axes": frame(Frame, (), 1, 2, 3), "circle": frame(Frame, (), circle, small),
    "many": frame(Frame, many, wide, small), "series": frame(Series, (block(None, EVIL),), small),
    "none": Frame(), "text": frame(Frame, EVIL, EVIL, EVIL), "index": index(_data=EVIL, _name=EVIL),
    "levels": index(_levels=[circle] * 9, _codes=[circle] * 9, _names=[EVIL]), "own": circle,
}
lies["itself"] = frame(Frame, (), small, lies["wide"])
lies["itself"]._mgr.axes[1] = lies["itself"]
globals().update(lies)
print("ready", " ".join(lies), flush=True)
sys.stdin.read()
"""


def test_objects_that_claim_to_be_greenlets():
    with program(FAKES, EVIL, "400") as process:
        for table in ("python.greenlets", "python.greenlet_frames"):
            asked(process.pid, "query", "SELECT * FROM %s LIMIT 500" % table)
            counted = asked(process.pid, "query", "-f", "csv", "SELECT count(*) FROM " + table)
            assert int(counted.split()[-1]) <= 400 * 25


def test_objects_that_claim_to_be_of_pandas():
    process = support.Program([PYTHON, "-c", FRAMES, EVIL], **AS_USER)
    with process:
        names = process.line().split()
        assert names.pop(0) == "ready", process.errors()
        for name in names:
            asked(process.pid, "print", name)
            asked(process.pid, "print", "--depth", "9", "--max-items", "1000", name)
            done = run(process.pid, "print", name + ".shape", preexec_fn=limited)
            assert done.returncode in (0, 1), done
            harmless(done.stdout + done.stderr)
        asked(process.pid, "dump", "--locals", "--all-names")


# Programs that `list` recognises

DEEP = """
import os, sys, threading
EVIL = sys.argv[-1]
def deep(left):
    if left:
        return deep(left - 1)
    os.write(1, b"ready\\n")
    return sys.stdin.read()
deep.__code__ = deep.__code__.replace(co_name=EVIL, co_filename="/" + EVIL + "/gunicorn/workers/base.py")
sys.setrecursionlimit(20000)
threading.stack_size(64 << 20)
if os.fork():
    os.wait()
else:
    thread = threading.Thread(target=deep, args=(10000,))
    thread.start()
    thread.join()
"""


@pytest.mark.parametrize("name", ["gunicorn: master [%s]", "gunicorn: worker [%s]", "%s celeryd: %s",
                                  "python -m uvicorn %s", "[celeryd: %s:MainProcess] -active-"])
def test_command_lines_that_list_recognises(name):
    lie = name.replace("%s", EVIL)
    process = support.Program([lie, "-c", DEEP, EVIL], executable=PYTHON, **AS_USER)
    with process:
        assert process.line() == "ready", process.errors()
        asked("list")
        asked("list", "--tree")
        found = {each["pid"]: each for each in json.loads(asked("list", "--json"))}
        mine = [each for each in found.values() if process.pid in (each["pid"], each["ppid"])]
        assert len(mine) == 2, found
        for each in mine:
            assert each["program"] is None or each["program"].replace(" ", "").isalpha(), each
        for each in mine:
            if each["pid"] != process.pid:
                os.kill(each["pid"], 9)


# How a rank ended, which the kernel tells its own user alone

LAUNCHER = """
import os, subprocess, sys
ranks = []
for rank in range(3):
    user = 0 if rank == 2 else int(sys.argv[1])
    ranks.append(subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], user=user, group=user,
                                  extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(
        os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT="29567")))
    ranks[-1].stdout.readline()
ranks[2].kill()
os.waitid(os.P_PID, ranks[2].pid, os.WEXITED | os.WNOWAIT)
print("ready", *(rank.pid for rank in ranks), flush=True)
input()
"""


def test_nobody_else_is_told_how_a_rank_ended(theirs):  # noqa: F811
    """For others the kernel says 0, which is no exit status."""
    binary = shutil.copy(support.BINARY, theirs / "probing")
    with support.Program([PYTHON, "-c", LAUNCHER, str(USER)], cwd="/") as launcher:
        pids = launcher.line().split()[1:]

        def look(**options):
            done = subprocess.run([binary, "-t", pids[0], "cluster", "hang"], stdin=subprocess.DEVNULL, cwd="/",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)
            return done.stdout + done.stderr

        assert "SIGKILL" in look()
        text = look(user=USER, group=USER, extra_groups=[])
        assert "rank 2" in text and "exited with" not in text
