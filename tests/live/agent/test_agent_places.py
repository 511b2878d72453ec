# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent in other namespaces, roots and users, and in processes that fork or call exec."""
import json
import os
import shutil
import signal
import subprocess

import pytest

import agent
import environment
import support
from agent import Client, wait_until
from environment import NO_PROCESS, OK, Started, needs, other_tmp

SCRIPT = support.HERE / "programs" / "obeys.py"
SYSTEM = [i for i in support.INTERPRETERS if i.exe.startswith("/usr/bin/")]


def works(probing, pid):
    """All commands, from nothing to nothing."""
    for _ in range(2):
        done = probing(pid, "eval", "import os\nos.getpid()")
        assert done.code == OK, done
        number = int(done.out)
        status = json.loads(probing(pid, "agent", "status", "--json").out)
        assert status["pid"] == number and status["evaluations"] == 1, status
        row = next(row for row in json.loads(probing("list", "--json").out) if row["pid"] == pid)
        assert row["agent"] == "running", row
        done = probing(pid, "eject")
        assert done.out.endswith("and its library is unmapped\n"), done
    row = next(row for row in json.loads(probing("list", "--json").out) if row["pid"] == pid)
    assert row["agent"] is None, row
    return status["socket"]


@needs("no mount namespaces here", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp")
@pytest.mark.parametrize("options,name", [("size=1m", "/tmp/probing-"), ("noexec", "/tmp/probing-"),
                                          ("ro", "@probing-")])
def test_a_tmp_of_its_own(newest, probing, options, name):
    """Its socket lies there; without a folder that can be written, it has an abstract name."""
    env = {key: value for key, value in newest.env.items() if key != "XDG_RUNTIME_DIR"}
    with Started(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o %s none /tmp && exec \"$@\"" %
                  options, "sh", newest.exe, "-c", SCRIPT.read_text()], rest=1,
                 env=env) as process:  # which may lie in the /tmp that is hidden
        assert works(probing, process.python).startswith(name)


@needs("no pid namespaces here", "unshare", "-p", "-f", "true")
def test_pid_namespace(newest, probing):
    with Started(["unshare", "-p", "-f", newest.exe, SCRIPT], rest=1, env=newest.env) as process:
        assert works(probing, process.python).endswith("/agent-1.sock")
        outer = probing(process.python, "eval", "import os; os.getpid()")
        assert outer.out == "1\n", outer


@needs("no network namespaces here", "unshare", "-n", "true")
@pytest.mark.parametrize("tmp", ["", "mount -t tmpfs -o ro none /tmp && "])
def test_network_namespace(newest, probing, tmp):
    """A socket file is found from any namespace; an abstract name is not, and the command says what it
    needs."""
    env = {key: value for key, value in newest.env.items() if key != "XDG_RUNTIME_DIR"}
    with Started(["unshare", "-n", "-m", "sh", "-c", tmp + "exec \"$@\"", "sh", newest.exe, "-c",
                  SCRIPT.read_text()], rest=1, env=env) as process:
        works(probing, process.python)


@pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM, reason="needs root and the system's Python")
@pytest.mark.parametrize("before", [[], ["unshare", "-U", "-r"], ["unshare", "-U"]])
def test_another_user_s_process(probing, somebody, before):
    """Also where that user is root in a namespace of its own, which does not know our root."""
    if before and not environment.runs(*before, "true"):
        pytest.skip("no user namespaces here")
    # In a namespace it would use, or leave behind, the folder in /tmp of its user there.
    inside = ["unshare", "-m", "sh", "-c", other_tmp(), "sh"] if before else []
    command = [*inside, "setpriv", "--reuid", somebody, "--regid", somebody, "--clear-groups", *before,
               SYSTEM[0].exe, "-c", SCRIPT.read_text()]
    with Started(command, rest=1, cwd="/", env={"PATH": os.environ["PATH"]}) as process:
        works(probing, process.python)


ROOTS = [i for i in support.INTERPRETERS if i.chroot]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root")
@pytest.mark.parametrize("interpreter", ROOTS, ids=repr)
def test_other_root(interpreter, probing):
    with Started([shutil.which("chroot"), interpreter.chroot, interpreter.chroot_exe, "-c",
                  SCRIPT.read_text()], rest=1, env={"PATH": "/usr/bin"}) as process:
        works(probing, process.python)


def obey(process, *lines):
    for line in lines:
        process.send(line.encode() + b"\n")
        assert process.line() == "done", process.errors()


@pytest.mark.parametrize("way", ["os.fork()", "os.forkpty()[0]"])
def test_a_child_of_fork(interpreter, target, probing, way):
    """The child has no agent and none of our descriptors, can get an agent of its own, and ends normally."""
    process = target("obeys.py", interpreter=interpreter)
    path = agent.load(probing, process.pid)
    with Client(path) as client:
        assert client.evaluate("1")[0] == agent.OK
        obey(process, "child = %s or exec('import time; time.sleep(600)') or 1" % way,
             "number = child")
        with Client(path) as other:
            child = int(other.evaluate("child")[1][agent.VALUE])
        try:
            wait_until(lambda: agent.ours(child) == [] and not any("socket:" in path for path in agent.opened(child)))
            row = next(row for row in json.loads(probing("list", "--json").out)
                       if row["pid"] == child)
            assert row["agent"] == "stopped", row
            done = probing(child, "eval", "import os; os.getpid()")
            assert done.out == "%d\n" % child, done
            assert probing(child, "eject").out.endswith("unmapped\n")
        finally:
            os.kill(child, signal.SIGKILL)
        obey(process, "os.waitpid(child, 0)")
        assert os.path.exists(path)
        assert client.evaluate("2")[1] == {agent.VALUE: b"2"}


def test_children_of_many_kinds(newest, target, probing):
    """The way of starting them does not matter; the parent's agent continues."""
    process = target("obeys.py")
    path = agent.load(probing, process.pid)
    obey(process, "import subprocess, multiprocessing, concurrent.futures",
         "assert subprocess.check_output(['sh', '-c', 'ls -l /proc/self/fd']).count(b'socket') == 0",
         "assert os.system('exit 3') == 3 << 8",
         "assert os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)[1] == 0",
         "pool = multiprocessing.get_context('fork').Pool(2); "
         "assert pool.map(abs, [-1, -2]) == [1, 2]; pool.close(); pool.join()")
    with Client(path) as client:
        assert client.evaluate("1")[0] == agent.OK


@pytest.mark.parametrize("ending,status", [
    ("os._exit(7)", 7), ("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", -9),
    ("os.execv('/bin/sh', ['sh', '-c', 'exit 7'])", 7)])
def test_ways_to_end(interpreter, target, probing, ending, status):
    """While code waits in a call, and with daemon threads: as without the agent."""
    process = target("obeys.py", interpreter=interpreter)
    path = agent.load(probing, process.pid)
    obey(process, "import time, atexit; atexit.register(os.write, 1, b'last\\n')",
         "t = threading.Thread(target=time.sleep, args=(600,)); t.daemon = True; t.start()")
    with Client(path) as client:
        client.send(agent.evaluation("print('begun')\nimport time\ntime.sleep(600)"))
        assert client.receive() == (agent.STDOUT, b"begun")
        process.send(ending.encode() + b"\n")
        if ending.startswith("sys"):
            assert process.line() == "last"
        assert process.wait()[0] == status
        assert not client.until(agent.DONE)[-1]
    assert os.path.exists(path) == (not ending.startswith("sys"))
    assert probing(process.pid, "agent", "status").code == NO_PROCESS


def test_functions_at_exit_come_in_their_order(newest, target, probing):
    """Our function is called in order among them, and code can be evaluated in the program's."""
    process = target("obeys.py")
    obey(process, "import atexit; atexit.register(lambda: (os.write(1, b'first\\n'), os.read(0, 1)))")
    assert probing(process.pid, "eval", "1").out == "1\n"
    obey(process, "atexit.register(os.write, 1, b'later\\n')")
    process.send(b"sys.exit(3)\n")
    assert process.line() == "later" and process.line() == "first"
    done = probing(process.pid, "eval", "--timeout", "2", "2")
    assert done.out == "2\n" or "shutting down" in done.err, done
    process.send(b"x")
    assert process.wait()[0] == 3


def test_no_descriptor_left(newest, target, probing):
    """A program that has as many files open as it may: refused, and nothing of it is harmed."""
    process = target("obeys.py")
    obey(process, "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))",
         "files = [os.open('/dev/null', os.O_RDONLY) for _ in range(17)]")
    done = probing(process.pid, "eval", "1")
    assert done.code not in (OK, NO_PROCESS) and "Too many open files" in done.err, done
    assert agent.ours(process.pid) == []
    obey(process, "os.close(files.pop()); os.close(files.pop()); os.close(files.pop())")
    assert probing(process.pid, "eval", "1").out == "1\n"
    assert probing(process.pid, "eject").code == OK


def test_two_libpythons(probing, tmp_path):
    """The initialised one answers."""
    libraries = [environment.parts(i)[1] for i in support.INTERPRETERS if not i.chroot]
    libraries = [library for library in libraries if library and library.startswith("/usr/lib")]
    if not libraries or shutil.which("cc") is None:
        pytest.skip("no libpython to load")
    source = tmp_path / "two.c"
    source.write_text(
        "#include <dlfcn.h>\n#include <unistd.h>\n#include <stdlib.h>\n"
        "int main(int argc, char **argv) {\n"
        "    void *one = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);\n"
        "    void *two = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);\n"
        "    if (!one || !two) return 2;\n"
        "    ((void (*)(void))dlsym(two, \"Py_Initialize\"))();\n"
        "    ((int (*)(const char *))dlsym(two, \"PyRun_SimpleString\"))(\n"
        "        \"which = 'second'\\nimport os\\nos.write(1, b'ready\\\\n')\\nos.read(0, 1)\");\n"
        "    return 0;\n}\n")
    binary = tmp_path / "two"
    subprocess.run(["cc", "-o", binary, source, "-ldl"], check=True)
    copy = tmp_path / "libpython-copy.so"
    shutil.copy(libraries[0], copy)
    for pair in ((copy, libraries[0]), (libraries[0], copy)):
        with support.Program([binary, *pair]) as process:
            assert process.line() == "ready"
            done = probing(process.pid, "eval", "which")
            assert done.out == "'second'\n", done
            assert probing(process.pid, "eject").code == OK
