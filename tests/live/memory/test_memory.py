# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing memory`: the parts of a process's memory, its growth, and the holders."""
import json
import shutil
import subprocess

import pytest

import support
import training
from environment import PROGRAMS


def read(probing, target, *options):
    done = probing(str(getattr(target, "pid", target)), "memory", "--json", *options)
    assert done.code == 0, done
    return json.loads(done.out)


def census(probing, target, *options):
    found = read(probing, target, *options)
    assert found["error"] is None and len(found["interpreters"]) == 1, found
    found = found["interpreters"][0]
    assert found["error"] is None, found
    return found


def types(found):
    return {row["type"]: row for row in found["types"]}


@pytest.fixture
def leaks(target, interpreter):
    return target("leaks.py", interpreter=interpreter)


def leak(process, rounds):
    process.send(b"\n" * rounds)
    for _ in range(rounds):
        assert process.line().startswith("leaked")


def check_objects(found):
    """The objects that the program reports, including those that the collector does not track."""
    of = types(found)
    assert found["doubt"] is None, found["doubt"]
    assert of["__main__.Slotted"]["objects"] == 700
    assert of["frozenset"]["objects"] >= 500 and of["float"]["objects"] >= 1000
    assert 5700 <= of["str"]["objects"] <= 60000, of["str"]
    assert 3000 <= of["tuple"]["objects"] <= 40000
    assert 2000 <= of["dict"]["objects"] <= 10000
    assert of["bytearray"]["objects"] == 1 and 3000000 <= of["bytearray"]["bytes"] <= 3000500
    assert of["array.array"]["objects"] == 1 and 2000000 <= of["array.array"]["bytes"] <= 2000500
    assert of["mmap.mmap"]["owned"] == 4 << 20
    # Each int is a few bytes more than its digits; none counts twice.
    assert of["int"]["objects"] >= 8000 and of["int"]["bytes"] <= 48 * of["int"]["objects"]
    assert found["objects"] == sum(row["objects"] for row in found["types"])
    assert found["bytes"] == sum(row["bytes"] for row in found["types"])


def test_objects(probing, leaks, interpreter):
    found = read(probing, leaks)
    kernel = found["process"]
    assert 0 < kernel["anonymous"] <= kernel["rss"] <= kernel["peak"]
    assert 0 < kernel["pss"] and kernel["swap"] >= 0
    check_objects(found["interpreters"][0])
    small = found["interpreters"][0]["small_objects"]
    if interpreter.free_threaded or interpreter.version < (3, 7):
        return
    assert small["arenas"] >= 2 and small["used"] > small["free"], small
    assert small["used"] + small["free"] < small["arenas"] * small["arena_bytes"]


LEAKS = {
    "__main__.CACHE": "dict",
    "__main__.bus.handlers": "list",
    "__main__.bus.recent": "collections.deque",
    "__main__.keep.__closure__[0].cell_contents": "list",
    "local in main()": "dict",
}


def test_growth(probing, leaks):
    """Each leak is found with its holder, and code that leaves nothing behind is not."""
    leak(leaks, 1)
    out = growth(leaks, lambda: leak(leaks, 3), "--json")
    check_growth(json.loads(out)["interpreters"][0])


def growth(process, act, *options):
    """The output for a process that acts between the two readings."""
    command = [support.BINARY, str(process.pid), "memory", "--growth", "3600s", *options]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
        support.wait_for_sleep(running.pid, "nanosleep", running.pid, timeout=100)
        act()
        running.send_signal(2)  # ends the wait
        out = running.communicate(timeout=120)[0]
        assert running.returncode == 0
    return out.decode()


RUNS_ANOTHER = "import os, sys; print('ready', flush=True); sys.stdin.readline(); os.execv('/bin/sleep', ['sleep', '600'])"


@pytest.mark.parametrize("end, code, said", [("kill", 6, "ended before its growth could be read"),
                                             ("exec", 1, "began to run another program")])
def test_growth_of_a_process_that_ends(newest, end, code, said):
    """It is not waited for any longer."""
    with support.Target(newest, "-c", RUNS_ANOTHER) as process:
        assert process.line() == "ready"
        command = subprocess.Popen([support.BINARY, str(process.pid), "memory", "--growth", "3600s"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        support.wait_for_sleep(command.pid, "hrtimer_nanosleep")
        if end == "kill":
            process.kill()
        else:
            process.send(b"exec\n")
        out, err = command.communicate(timeout=120)
    assert command.returncode == code and not out and said in err, (command.returncode, out, err)


def check_growth(found):
    """The growth in three rounds."""
    holders = {row["holder"]: row for row in found["holders"]}
    for name, kind in LEAKS.items():
        assert name in holders, (name, sorted(map(str, holders)))
        assert holders[name]["type"] == kind
        # Three rounds of 400, of one object or more each; some may be where freed ones were.
        assert 1000 <= holders[name]["objects"] <= 6000, holders[name]
    # Objects held by C code for a moment are another row without a path.
    garbage, = (row for row in found["holders"] if row["garbage"])
    assert garbage["holder"] is None
    assert {row["type"]: row["objects"] for row in garbage["types"]}["__main__.Node"] >= 2000
    grown = {row["type"]: row["objects"] for row in found["types"]}
    assert grown["__main__.Node"] == 2400 and grown["__main__.Record"] == 1200
    assert grown["bytearray"] == 1200 and "__main__.Slotted" not in grown


def test_growth_of_c(target, interpreter):
    """A C library's leak is in no object; its size is reported."""
    if not interpreter.has_ctypes:
        pytest.skip("it has no ctypes")
    process = target("leaks_of_c.py", interpreter=interpreter)
    out = growth(process, lambda: leak(process, 3))
    assert "more than half of it is not in Python objects: memory of C code" in out, out


SPREAD = """
import sys
class Session(object):
    def __init__(self):
        self.history = []
class Service(object):
    def __init__(self):
        self.sessions = dict(("user %d" % i, Session()) for i in range(300))
        self.queues = [[] for _ in range(500)]
service = Service()
print("ready")
sys.stdout.flush()
total = 0
for line in sys.stdin:
    for session in service.sessions.values():
        session.history.append("request number %60d" % total)
        total += 1
    for queue in service.queues:
        queue.append(total + 0.5)
        total += 1
    print("leaked")
    sys.stdout.flush()
"""


def test_growth_that_is_spread(interpreter):
    """A leak into a thousand lists is reported once, and not as a thousand small ones."""
    with support.Program([interpreter.exe, "-c", SPREAD], env=interpreter.env) as process:
        assert process.line() == "ready"
        leak(process, 1)
        found = json.loads(growth(process, lambda: leak(process, 4), "--json"))["interpreters"][0]
        text = growth(process, lambda: leak(process, 4), "--rows", "1")
    holders = {row["holder"]: row for row in found["holders"]}
    for name, count in ("__main__.service.sessions[…].history", 300), ("__main__.service.queues[…]", 500):
        holder = holders[name]
        # Some of the new ones may lie where others were freed.
        assert holder["type"] == "list" and 0.9 * count <= holder["count"] <= count, holder
        assert 3 * count < holder["objects"] <= 4 * count, holder
        assert holder["example"].startswith(name.split("[")[0] + "["), holder
    assert "  __main__.service.sessions[…].history: list, each of " in text, text
    assert " other places\n" in text, text


def test_growth_of_tensors(probing):
    """A list of tensors that a closure keeps."""
    training.check()
    with support.Program([training.PYTHON, PROGRAMS / "training" / "leaks.py"]) as process:
        assert process.line(timeout=100) == "ready"
        leak(process, 1)
        found = json.loads(growth(process, lambda: leak(process, 3), "--json"))["interpreters"][0]
    holders = {row["holder"]: row for row in found["holders"]}
    kept = holders["__main__.keep.__closure__[0].cell_contents"]
    assert kept["type"] == "list" and kept["types"][0]["type"] == "torch.Tensor", kept
    assert kept["types"][0]["objects"] == 300 and 300 * 4000 <= kept["bytes"] < 300 * 6000, kept


def test_text(probing, target, newest):
    process = target("leaks.py", interpreter=newest)
    done = probing(str(process.pid), "mem", "--rows", "3")
    assert done.code == 0 and not done.err
    lines = done.out.split("\n")
    assert lines[0].startswith("%d  " % process.pid) and "leaks.py" in lines[0]
    assert lines[1].startswith("RSS ") and " · PSS " in lines[1]
    table = lines.index("       count      bytes  type")
    assert "  bytearray  (2.9 MiB of it what they own)" in done.out, done.out
    assert lines[table + 4].endswith("other types"), done.out
    assert "\nAnonymous memory beyond these objects: " in done.out
    assert "Small-object allocator: " in done.out or newest.free_threaded
    assert "Tensors" not in done.out


def test_watch(probing, target, newest):
    process = target("leaks.py", interpreter=newest)
    done = probing(str(process.pid), "memory", "--watch", "10ms", "--count", "3", "-n", "1")
    assert done.code == 0 and done.out.count("RSS ") == 3


@pytest.mark.parametrize("options, words", [
    (["--watch", "1s", "--growth", "1s"], "exclude each other"),
    (["--count", "2"], "--count is for --watch"),
    (["--rows", "2000000000"], "no more than"),
])
def test_usage(probing, target, newest, options, words):
    process = target("leaks.py", interpreter=newest)
    done = probing(str(process.pid), "memory", *options)
    assert done.code == 2 and words in done.err


def test_limit(probing, target, newest):
    """A walk that has no time says that something is missing."""
    process = target("leaks.py", interpreter=newest)
    found = census(probing, process, "--max-time", "0.000001ms")
    assert found["doubt"] and "missing" in found["doubt"]


def test_no_python(probing):
    with subprocess.Popen(["sleep", "3600"]) as process:
        try:
            support.wait_for_sleep(process.pid, "nanosleep", process.pid)
            found = read(probing, process)
        finally:
            process.kill()
    assert found["error"] and not found["interpreters"] and found["process"]["rss"] > 0


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_core(probing, target, newest, tmp_path):
    process = target("leaks.py", interpreter=newest)
    subprocess.run(["gcore", "-o", tmp_path / "core", str(process.pid)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    core = tmp_path / ("core.%d" % process.pid)
    found = read(probing, core)
    assert found["process"]["rss"] is None
    check_objects(found["interpreters"][0])
    live = types(census(probing, process))
    assert {name: row["objects"] for name, row in types(found["interpreters"][0]).items()} == \
        {name: row["objects"] for name, row in live.items()}
    text = probing(str(core), "memory")
    assert "a core file does not have the kernel's figures" in text.out
    grown = probing(str(core), "memory", "--growth", "1s")
    assert grown.code == 3 and "growth needs a process that runs" in grown.err


LOADS = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print('ready', flush=True); input()"


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler for the sample")
def test_gpu(probing, tmp_path):
    """Of a process that has loaded CUDA: the driver's data, or that it has none."""
    for name, source in (("libcuda.so.1", "cuda_driver.c"), ("libnvidia-ml.so.1", "nvidia_ml.c")):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / name, PROGRAMS / source], check=True)
    with support.Program(["/usr/bin/python3", "-c", LOADS, tmp_path / "libcuda.so.1"]) as process:
        assert process.line() == "ready"
        env = {"LD_LIBRARY_PATH": str(tmp_path), "GPU_PID": str(process.pid), "GPU_OTHERS": "300"}
        gpus = json.loads(probing(process.pid, "memory", "--json", env=env).out)
        assert gpus["gpu_error"] is None and gpus["gpus"] == [
            {"gpu": 0, "name": "NVIDIA H200", "bytes": 50000000000, "used": 50754820096,
             "total": 150754820096}]
        text = probing(process.pid, "memory", env=env).out
        assert "\n  GPU 0, NVIDIA H200: 46.6 GiB · all processes 47.3 GiB of 140 GiB\n" in text, text
        for changed, words in (({"GPU_PID": "1"}, "NVIDIA's driver does not name this process"),
                               ({"NO_DRIVER": "1"}, "libnvidia-ml.so.1: Driver Not Loaded"),
                               ({"LD_LIBRARY_PATH": ""}, "libnvidia-ml.so.1 is not installed here")):
            found = json.loads(probing(process.pid, "memory", "--json", env={**env, **changed}).out)
            assert found["gpu_error"] == words and found["gpus"] == [], found
            assert "\n  GPU: not known: " + words in probing(
                process.pid, "memory", env={**env, **changed}).out


LOOKS_LIKE = """
import ctypes
class First:
    pass
class Second:
    pass
# Memory of C that begins with two types is no object of the second one.
words = (ctypes.c_size_t * 8)(id(First), id(Second), 1)
kept = ctypes.c_void_p(ctypes.addressof(words))
class Own:
    pass
# Nor is the array of an instance's attributes, one of which is a class, while its dict shows it.
own = Own()
own.one = own.other = 1
own.kind = Own
shown = vars(own)
print("ready", flush=True)
input()
"""


def test_memory_that_looks_like_objects(probing, interpreter):
    if not interpreter.has_ctypes:
        pytest.skip("it has no ctypes")
    with support.Program([interpreter.exe, "-c", LOOKS_LIKE], env=interpreter.env) as process:
        assert process.line() == "ready"
        found = types(census(probing, process))
        assert "__main__.Second" not in found and "__main__.First" not in found
        assert found["__main__.Own"]["objects"] == 1
        assert all(name.isprintable() and not name.startswith("<type at") for name in found), found


BUSY = """
def down(depth):
    return depth and down(depth - 1)
def main():
    kept = [[1, 2]]
    print(id(kept[0]), flush=True)
    while True:
        for depth in range(40):
            down(depth)
main()
"""


def test_frames_that_change(probing, interpreter):
    """The variables of the outermost frame are found, however fast its thread runs."""
    if interpreter.version < (3, 11):
        pytest.skip("frames are objects there")
    with support.Program([interpreter.exe, "-c", BUSY], env=interpreter.env) as process:
        address = process.line()
        for _ in range(support.count(10, 200)):
            done = probing(process.pid, "query", "-f", "json",
                           "SELECT holder FROM python.referrers(%s)" % address)
            assert done.code == 0, done
            assert {row["holder"] for row in json.loads(done.out)} == {"kept in main()"}, done
