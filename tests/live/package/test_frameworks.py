# SPDX-License-Identifier: GPL-3.0-or-later
"""gevent, uvloop, a Jupyter kernel and pytest under PROBING=1, and the agent in them: from outside and
from code.

The packages are in build/frameworks; the long form installs them there."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import support
from support import LONG
from wheels import environment, wheel  # noqa: F401

PACKAGES = ["gevent", "uvloop", "ipykernel", "jupyter_client", "pytest"]
FOLDER = Path(support.BINARY).resolve().parent / "frameworks"
PYTHON = FOLDER / "bin" / "python"
# The agent's answer in each: a statement on its own thread, and on the main thread or its event loop.
ASK = """
def asked(pid, *words):
    import subprocess, sys
    for words in ([], list(words)):
        done = subprocess.run([{program!r}, str(pid), "eval", "--no-inject", "6 * 7"] + words,
                              stdout=subprocess.PIPE, timeout=60)
        print(done.stdout.decode().strip(), flush=True)
def rows(pid):
    import subprocess
    print(subprocess.run([{program!r}, str(pid), "query", "-f", "csv", "SELECT name, parent_id IS NULL AS outermost "
        "FROM python.trace_event WHERE record = 'span_begin' ORDER BY name"],
        stdout=subprocess.PIPE, timeout=60).stdout.decode().split(), flush=True)
"""
GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent, os, threading, probing
def work(number):
    with probing.span("work%d" % number):
        gevent.sleep(0.01)
        with probing.span("inner%d" % number):
            gevent.sleep(0.01)
    return number
print([each.get() for each in [gevent.spawn(work, number) for number in range(3)]], threading.active_count())
import subprocess
asking = gevent.spawn(asked, os.getpid(), "--thread", "main")
while not asking.dead:
    gevent.sleep(0.01)
rows(os.getpid())
"""
UVLOOP = """
import asyncio, os, probing, uvloop
async def work(number):
    with probing.span("work%d" % number):
        await asyncio.sleep(0.01)
        with probing.span("inner%d" % number):
            await asyncio.sleep(0.01)
    return number
async def main():
    print(await asyncio.gather(*map(work, range(3))), type(asyncio.get_running_loop()).__module__)
    await asyncio.get_running_loop().run_in_executor(None, asked, os.getpid(), "--loop")
    rows(os.getpid())
uvloop.run(main())
"""
SPANS = "['name,outermost', 'inner0,0', 'inner1,0', 'inner2,0', 'work0,1', 'work1,1', 'work2,1']"
KERNEL = """
import os, sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3")
def run(code):
    printed = []
    client.execute_interactive(code, timeout=60, output_hook=lambda message: printed.append(
        message["content"].get("text") or message["content"].get("evalue") or ""))
    return "".join(printed).strip()
print(run("1 / 0"), run("print(21 * 2)"))
pid = int(run("import os; print(os.getpid())"))
print("libprobing-agent" in open("/proc/%d/maps" % pid).read())
asked(pid, "--loop")
print(run("import probing\\nwith probing.span('cell'): print(probing.event('x'))"))
rows(pid)
client.shutdown()
manager.shutdown_kernel(now=False)
print(manager.is_alive())
"""
TESTS = """
import os, subprocess, sys, threading, warnings
def test_sees_the_agent():
    assert "libprobing-agent" in open("/proc/self/maps").read()
def test_capture(capfd):
    os.system("echo out")
    assert capfd.readouterr().out == "out\\n"
def test_no_more_threads():
    assert threading.active_count() == 1
def test_spans():
    import probing
    with probing.span("tested"):
        assert probing.event("x")
def test_fork_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pid = os.fork()
        if not pid:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
def test_children_have_no_agent():
    code = "print('libprobing-agent' in open('/proc/self/maps').read())"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"False\\n"
"""


@pytest.fixture(scope="module")
def python(wheel):  # noqa: F811
    """The interpreter of an environment with the wheel and the packages."""
    stamp = FOLDER / "installed"
    if not stamp.exists():
        if not LONG:
            pytest.skip("the frameworks are not installed")
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True)
        done = subprocess.run([str(PYTHON), "-m", "pip", "install", "-q", *PACKAGES], stderr=subprocess.PIPE)
        if done.returncode:
            pytest.skip("the frameworks are not installed")
        stamp.write_text("")
    site = next((FOLDER / "lib").glob("python3*")) / "site-packages"
    with zipfile.ZipFile(str(wheel)) as file:
        file.extractall(str(site))
    return str(PYTHON)


def run(python, tmp_path, code, *words, **variables):
    (tmp_path / "program.py").write_text(ASK.format(program=support.BINARY) + code)
    return subprocess.run([python, *(words or ["program.py"])], cwd=str(tmp_path), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120,
                          env=environment(dict({"PROBING_DATA_DIR": str(tmp_path)}, **variables)))


@pytest.fixture(autouse=True)
def own(tmp_path):
    os.chmod(str(tmp_path), 0o700)


@pytest.mark.parametrize("mode", ["1", "2"])
@pytest.mark.parametrize("code, told", [(GEVENT, "[0, 1, 2] 1"), (UVLOOP, "[0, 1, 2] uvloop")],
                         ids=["gevent", "uvloop"])
def test_loops(python, tmp_path, code, told, mode):
    done = run(python, tmp_path, code, PROBING=mode)
    assert (done.returncode, done.stdout.decode().splitlines()) == (0, [told, "42", "42", SPANS]), done
    assert done.stderr == b"", done


def test_jupyter_kernel(python, tmp_path):
    done = run(python, tmp_path, KERNEL, PROBING="2", JUPYTER_RUNTIME_DIR=str(tmp_path),
               IPYTHONDIR=str(tmp_path))
    assert done.stdout.decode().splitlines() == [
        "division by zero 42", "True", "42", "42", "True", "['name,outermost', 'cell,1']", "False"], done


def test_pytest(python, tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    done = run(python, tmp_path, "", "-m", "pytest", "-q", "-p", "no:cacheprovider", PROBING="1")
    assert done.returncode == 0 and b"6 passed" in done.stdout, done
    assert json.dumps(done.stderr.decode()) == '""', done
