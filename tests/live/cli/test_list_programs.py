# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing list` identifies well-known programs and their workers."""

import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

import packages
import support
import terminal
import training

APP = """
import time
async def app(scope, receive, send): pass
def wsgi(environ, start): start("200 OK", []); return [b""]
def test_waits(): time.sleep(1000)
"""
TASKS = "from celery import Celery\napp = Celery('tasks', broker='memory://')\n"
LOADER = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i):
        time.sleep(1000)
if __name__ == "__main__":
    for batch in DataLoader(Slow(), num_workers=2): pass
"""
POOLS = """
import concurrent.futures, multiprocessing, time
if __name__ == "__main__":
    pool = multiprocessing.get_context("fork").Pool(1)
    pool.apply_async(time.sleep, [1000])
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        executor.submit(time.sleep, 1000)
"""
IPYTHON = "from IPython import start_ipython; start_ipython()"


def listed(probing, pid):
    """{program: count} of a process and its descendants."""
    found = json.loads(probing("list", "--json").out)
    tree, programs = {pid}, {}
    for _ in range(3):
        tree |= {each["pid"] for each in found if each["ppid"] in tree}
    for each in found:
        if each["pid"] in tree:
            programs[each["program"]] = programs.get(each["program"], 0) + 1
    return programs


@pytest.fixture
def start(tmp_path):
    started = []

    def run(*command):
        started.append(subprocess.Popen(
            list(map(str, command)), cwd=tmp_path, stdin=subprocess.PIPE, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return started[-1].pid

    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "test_it.py").write_text(APP)
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "loader.py").write_text(LOADER)
    (tmp_path / "pools.py").write_text(POOLS)
    (tmp_path / "ipython").write_text(IPYTHON)
    yield run
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def expect(probing, pid, wanted):
    deadline = time.monotonic() + 90
    while True:
        found = listed(probing, pid)
        if all(found.get(program, 0) >= count for program, count in wanted.items()):
            assert set(found) - {None} <= set(wanted), found
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@pytest.mark.parametrize("package, words, wanted", [
    ("gunicorn", [packages.BIN / "gunicorn", "-w", "2", "-b", "unix:g.sock", "app:wsgi"],
     {"gunicorn master": 1, "gunicorn worker": 2}),
    ("uvicorn", [packages.PYTHON, "-m", "uvicorn", "--uds", "u.sock", "app:app"], {"uvicorn": 1}),
    ("uvicorn", [packages.BIN / "uvicorn", "--workers", "2", "--uds", "u.sock", "app:app"],
     {"uvicorn": 1, "uvicorn worker": 2, "multiprocessing resource tracker": 1}),
    ("celery", [packages.BIN / "celery", "-A", "tasks", "worker", "-c", "2", "--without-mingle"],
     {"Celery worker": 1, "Celery pool process": 2}),
    ("pytest", [packages.PYTHON, "-m", "pytest", "test_it.py"], {"pytest": 1}),
    ("ipykernel", [packages.PYTHON, "-m", "ipykernel_launcher", "-f", "k.json"],
     {"Jupyter kernel": 1}),
    ("ipykernel", [packages.PYTHON, "ipython"], {"IPython": 1}),
], ids=["gunicorn", "uvicorn", "uvicorn-workers", "celery", "pytest", "kernel", "ipython"])
def test_programs(probing, start, package, words, wanted):
    packages.need(package)
    expect(probing, start(*words), wanted)


def test_workers_are_told_by_their_stacks(probing, start):
    """Workers of a forked pool have its command line, spawned ones have no useful one."""
    pid = start(packages.need("pytest"), "pools.py")
    expect(probing, pid, {"multiprocessing pool worker": 1, "process pool worker": 1,
                          "multiprocessing resource tracker": 1})


def test_data_loaders(probing, start):
    training.check()
    expect(probing, start("/usr/bin/python3", "loader.py"), {"torch DataLoader worker": 2})


def test_the_column_of_text(probing, start):
    pid = start(packages.need("pytest"), "-m", "pytest", "test_it.py")
    expect(probing, pid, {"pytest": 1})
    head, *lines = probing("list").out.splitlines()
    line, = [line for line in lines if line.split()[0] == str(pid)]
    at = head.index("PROGRAM")
    assert line[at:].startswith("pytest "), (head, line)


def test_long_names_of_programs_keep_to_the_width(probing, start):
    pid = start(packages.need("uvicorn"), "pools.py")
    expect(probing, pid, {"multiprocessing pool worker": 1, "process pool worker": 1,
                          "multiprocessing resource tracker": 1})
    with terminal.Terminal("list", size=(24, 80)) as listed_there:
        text, status = listed_there.end()
    assert not status
    lines = [line for line in text.splitlines() if "multiprocessing" in line]
    assert lines and all(len(line) <= 80 for line in text.splitlines() if "(" not in line), text
    assert all("…" in line for line in lines), text


def test_command_lines_end_where_the_terminal_does(newest, tmp_path):
    program = tmp_path / "long.py"
    program.write_text("import os\nos.write(1, b'ready\\n')\nos.read(0, 1)\n")
    with support.Target(newest, program, *["argument-%d" % i for i in range(40)]) as process:
        assert process.line() == "ready"
        with terminal.Terminal("list", size=(24, 100)) as listed:
            text, status = listed.end()
        assert not status
        line, = [line for line in text.splitlines() if line.split()[:1] == [str(process.pid)]]
        assert line.endswith("…") and len(line) == 100, line
        # Without a terminal, nothing is cut.
        whole = subprocess.check_output([support.BINARY, "list"], text=True)
        assert "argument-39" in whole


def file_of(pid):
    """The file that its Python is in."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        paths = [line.split()[-1] for line in maps if "/" in line]
    return next((path for path in paths if os.path.basename(path).startswith("libpython")), os.path.realpath("/proc/%d/exe" % pid))


def test_a_file_is_asked_for_its_version_once(tmp_path):
    some = support.one_per_version(first=(3, 8))[:2]
    with contextlib.ExitStack() as stack:
        running = [(python, stack.enter_context(support.Program([python.exe, "-c", "print(flush=True); input()"], env=python.env)))
                   for python in some for _ in range(3)]
        for _, program in running:
            program.line()
        done = subprocess.run(["strace", "-qq", "-o", tmp_path / "trace", "-e", "trace=openat", support.BINARY, "list", "--json"],
                              stdout=subprocess.PIPE, check=True)
        listed_here = {each["pid"]: each["version"] for each in json.loads(done.stdout)}
        trace = (tmp_path / "trace").read_text()
        for python, program in running:
            assert listed_here[program.pid].startswith("%d.%d." % python.version), python
            # One opening for its symbols, and at most one more for what else is mapped from it.
            assert 1 <= trace.count('"%s"' % file_of(program.pid)) <= 2, trace
