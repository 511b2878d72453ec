# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing memory`: the blocks of the C library's malloc(), and their growth."""
import contextlib
import ctypes
import json
import re
import subprocess

import pytest

import support
from environment import OK
from test_memory import growth, read
from test_sites import do

pytestmark = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"),
                                reason="glibc has mallinfo2() from 2.33 on")


@pytest.fixture
def process(target, newest):
    return target("mallocs.py", interpreter=newest)


def grown(process, *words):
    def act():
        for word in words:
            assert do(process, word) == "did"

    return json.loads(growth(process, act, "--json", "--rows", "1000"))["malloc"]


def by_size(found):
    return {row["block_bytes"]: row for row in found["sizes"]}


def test_the_same_as_glibc_says(probing, process):
    """Its own figures, with small blocks, large ones, and the arenas of threads."""
    for word in "blocks 20000 100", "blocks 3 5000000", "thread 30000 200", "thread 7 300000", "blocks 500 3000":
        assert do(process, word) == "did"
    arena, mapped, mapped_bytes, used, fast = (int(word) for word in do(process, "info").split())
    found = read(probing, process)["malloc"]
    assert found["error"] is None and not found["unseen"], found
    assert found["arenas"] >= 3 and found["bytes"] == arena, found
    assert (found["mapped_blocks"], found["mapped_bytes"]) == (mapped, mapped_bytes), found
    # Their arenas count the head of each, and Python has allocated a little since.
    assert abs(found["used"] - used - fast) < 65536 + 8192 * found["arenas"], (found, used, fast)


def test_sizes_that_grow(process):
    """The blocks of a leak are identified by size and number."""
    found = grown(process, "blocks 4000 1000", "thread 300 20000", "blocks 5 3000000")
    sizes = by_size(found)
    # A few may be where freed ones were.
    assert 3980 <= sizes[1000]["blocks"] <= 4000 and sizes[20008]["blocks"] == 300, sizes
    # A large block has whole pages.
    assert sum(sizes[size]["blocks"] for size in sizes if 3000000 < size < 3004096) == 5, sizes
    assert found["bytes"] > 4000 * 1000 + 300 * 20000 + 5 * 3000000


def test_which_library(process):
    """Objects of C++ begin with an address in their library: so do these."""
    out = growth(process, lambda: do(process, "pointers 3000 500"))
    (line,) = [line for line in out.split("\n") if "blocks of up to 504 bytes" in line]
    assert line.startswith(("     +2,9", "     +3,000")) and "+1.5 MiB  blocks" in line, out
    assert line.endswith("which begin with an address of libc.so.6"), out


@contextlib.contextmanager
def leaking(newest, folder, *options):
    """A process that leaks objects of a C++ extension: "KIND COUNT"."""
    library = folder / "libcache.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", *options, "-o", library,
                    support.HERE / "programs" / "leaks_objects.cpp"], check=True)
    code = "import ctypes, sys\nlibrary = ctypes.CDLL(%r)\nprint('ready', flush=True)\n" \
        "for line in sys.stdin:\n    kind, count = line.split()\n" \
        "    print(library[kind](int(count)) and '' or 'did', flush=True)" % str(library)
    with support.Target(newest, "-c", code) as process:
        assert process.line() == "ready"
        yield process


@pytest.mark.parametrize("stripped", [False, True], ids=["symbols", "stripped"])
def test_which_class(newest, tmp_path, stripped):
    """A leak of a C++ extension: its objects tell their class, without symbols too."""
    with leaking(newest, tmp_path, *["-s"] * stripped) as process:
        out = growth(process, lambda: do(process, "leak 3000"))
        found = json.loads(growth(process, lambda: do(process, "leak 3000"), "--json"))["malloc"]["sizes"]
    (line,) = [line for line in out.split("\n") if "[libcache.so]" in line]
    assert re.match(r" +\+[23],\d{3} +\+1\.\d MiB  blocks of up to 504 bytes, most of them objects of "
                    r"cache::\(anonymous namespace\)::Connection<long> \[libcache\.so\]$", line), out
    assert by_size({"sizes": found})[504]["class"] == "cache::(anonymous namespace)::Connection<long>", found


@pytest.mark.parametrize("others, told", [(10000, None), (1000, "cache::(anonymous namespace)::Connection<long>")])
def test_the_class_is_that_of_the_new_objects(newest, tmp_path, others, told):
    """Those that were there before may be of another class: where they are too many, none is told."""
    with leaking(newest, tmp_path) as process:
        assert do(process, "leak_other %d" % others) == "did"
        found = json.loads(growth(process, lambda: do(process, "leak 3000"), "--json"))["malloc"]["sizes"]
        row = by_size({"sizes": found})[504]
    assert (row["class"], row["begin_in"] is None, row["blocks"] > 2900) == (told, told is None, True), found


def test_text(probing, process):
    done = probing(process.pid, "memory")
    assert done.code == OK and "\nmalloc: 1 arena, " in done.out, done
    assert " large blocks of " in done.out


def test_no_time(probing, process):
    """Unread parts are reported."""
    assert do(process, "blocks 20000 1000") == "did"
    done = probing(process.pid, "memory", "--max-time", "0.000001ms")
    assert done.code == OK, done
    assert "\nmalloc: not known: there was no time to read all of it\n" in done.out, done


GROWS = """
import ctypes, time
malloc = ctypes.CDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
size = ctypes.CDLL(None).malloc_usable_size
size.restype, size.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
# A few come to lie where a block was that was a little larger.
print(sum(size(malloc(200)) == 200 for _ in range(200000)), flush=True)
for _ in range(5000):
    for _ in range(100):
        malloc(400)
    time.sleep(0.001)
time.sleep(3600)
"""


def test_a_heap_that_grows(probing, newest):
    """The end moves while the blocks before it are counted."""
    with support.Program([newest.exe, "-c", GROWS], env=newest.env) as process:
        count = int(process.line())
        for _ in range(support.count(3, 30)):
            found = read(probing, process)["malloc"]
            assert found["error"] is None and by_size(found)[200]["now_blocks"] >= count > 199900, found


FILLS = """
import ctypes, mmap
malloc = ctypes.CDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
for _ in range(10):
    malloc(7000000)
space = mmap.mmap(-1, 17 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
space[::4096]
for _ in range(10):
    malloc(9000000)
print("ready", flush=True)
input()
"""


def test_more_than_sixteen_gibibytes(probing, newest):
    """Over 4 million pages are there, as in a process that trains: each is the page of zeros, which takes no memory."""
    with support.Program([newest.exe, "-c", FILLS], env=newest.env) as process:
        assert process.line(timeout=400) == "ready"
        found = read(probing, process, "--max-time", "1000s")["malloc"]
        assert found["error"] is None and not found["unseen"] and found["unseen_bytes"] == 0, found
        large = [row for row in found["sizes"] if row["now_blocks"] == 10 and row["block_bytes"] >= 7000000]
        assert [row["block_bytes"] // 1000000 for row in large] == [9, 7], found


RESERVES = """
import mmap, sys
space = mmap.mmap(-1, int(sys.argv[1]) << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
print("ready", flush=True)
input()
"""


def tables_of(process):
    """Bytes of its page tables."""
    with open("/proc/%d/status" % process.pid) as file:
        (line,) = [line for line in file if line.startswith("VmPTE:")]
    return int(line.split()[1]) << 10


def test_reserved_memory_stays_empty(probing, newest):
    """A terabyte that a program has reserved is looked through without filling it with page tables."""
    with support.Program([newest.exe, "-c", RESERVES, "1"], env=newest.env) as process:
        assert process.line() == "ready"
        before = tables_of(process)
        found = read(probing, process)["malloc"]
        assert found["error"] is None and found["arenas"] >= 1, found
        assert tables_of(process) < before + (1 << 20)


def test_mappings_that_are_not_searched(probing, newest):
    """They are reported, and the arenas are known, if there is no time for all mappings."""
    with support.Program([newest.exe, "-c", RESERVES, "32"], env=newest.env) as process:
        assert process.line() == "ready"
        seconds, found = 0.25, {"error": "not read yet"}
        while found["error"]:
            seconds *= 2
            found = read(probing, process, "--max-time", "%gs" % seconds)["malloc"]
        assert found["unseen"] and found["unseen_bytes"] > 20 << 40 and found["arenas"] >= 1, found
        done = probing(process.pid, "memory", "--max-time", "%gs" % seconds)
        assert done.code == OK, done
        if "malloc: not known" not in done.out:
            assert " TiB of mappings were not searched for large blocks: " in done.out, done
