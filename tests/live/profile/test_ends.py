# SPDX-License-Identifier: GPL-3.0-or-later
"""How recordings end: by signals, while C functions get their names, and with descriptors that are closed."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
import uuid

import pytest

import profiles
import support
from terminal import Terminal

OK, FAILED = range(2)
UNNAMED = re.compile(r"^probing: warning: interrupted while C functions got their names: [1-9]\d* places in C code "
                     r"are shown by their addresses\n$")
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static const char build[] = "%s";
int main(int argc, char **argv)
{
\tdouble seconds = argc > 1 ? atof(argv[1]) : 600;
\tprintf("ready\\n");
\tfflush(stdout);
\tfor (volatile long n = 0; clock() < seconds * CLOCKS_PER_SEC; n++)
\t\t;
\treturn build[0] ? 7 : 8;
}
"""
# Before the first name is looked up it waits until the test lets it go on; then the disk may be full.
GATE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int comparison(const void *, const void *, void *);

void qsort_r(void *items, size_t count, size_t size, comparison *compare, void *context)
{
	void (*real)(void *, size_t, size_t, comparison *, void *) = dlsym(RTLD_NEXT, "qsort_r");

	char path[4096];

	snprintf(path, sizeof(path), "%s-%d", getenv("GATE_MET"), getpid());
	close(open(path, O_WRONLY | O_CREAT, 0600));
	while (access(getenv("GATE_OPEN"), F_OK))
		usleep(1000);
	real(items, count, size, compare, context);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");

	if (access(getenv("GATE_FULL"), F_OK))
		return real(fd, data, length, offset);
	errno = ENOSPC;
	return -1;
}
"""


def until(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def rows(file, sql):
    with contextlib.closing(sqlite3.connect(str(file))) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [value for value, in database.execute(sql)]


def unnamed(file):
    return [name for name in rows(file, "SELECT name FROM functions") if re.search(r"\+0x[0-9a-f]+$|^fun_[0-9a-f]+$", name)]


def compiled(folder, name, source, *options):
    path = folder / (name + ".c")
    path.write_text(source)
    subprocess.run(["gcc", "-O1", "-g", *options, "-o", folder / name, path], check=True)
    return folder / name


class Gate:
    """The naming of C functions waits at it, in commands that have this environment."""

    def __init__(self, folder):
        self._folder = folder
        shim = compiled(folder, "gate.so", GATE, "-shared", "-fPIC", "-ldl")
        self.env = {"LD_PRELOAD": str(shim), **{"GATE_" + name.upper(): str(folder / name)
                                                for name in ("met", "open", "full")}}

    def is_met(self, pid):
        return (self._folder / ("met-%d" % pid)).exists()

    def await_met(self, pid):
        until(lambda: self.is_met(pid))

    def open(self):
        (self._folder / "open").touch()

    def fill_the_disk(self):
        (self._folder / "full").touch()


@pytest.fixture(name="gate")
def fixture_gate(tmp_path):
    return Gate(tmp_path)


@pytest.fixture(name="program")
def fixture_program(tmp_path):
    """Its debug information is in no cache yet."""
    return compiled(tmp_path, "spins", PROGRAM % uuid.uuid4())


@pytest.fixture(name="busy")
def fixture_busy(program):
    with support.Program([program]) as process:
        assert process.line() == "ready"
        yield process


@pytest.fixture(name="python")
def fixture_python(target):
    return profiles.busy(target)


def perf(gate, *words):
    return subprocess.Popen([support.BINARY, *map(str, words)], env=dict(os.environ, **gate.env),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            universal_newlines=True)


def end_of(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def interrupt_naming(process, number=signal.SIGINT):
    """Once, and waits until it was noticed: the next one ends the command."""
    process.send_signal(number)
    until(lambda: not support.catches(process.pid, number))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_names_are_given_up(busy, gate, tmp_path, number):
    """The other functions stay without names, which is reported; the recording is complete."""
    file = tmp_path / "run.profile"
    process = perf(gate, busy.pid, "perf", "--cc", "-d", "1s", "-o", file)
    gate.await_met(process.pid)
    interrupt_naming(process, number)
    gate.open()
    code, out, err = end_of(process)
    assert code == OK and "the samples" in out and UNNAMED.search(err), (code, out, err)
    assert unnamed(file) and rows(file, "SELECT ended FROM recording") == ["time over"]
    assert busy.alive()


def test_in_the_background_of_a_script(busy, tmp_path):
    """A shell without job control ignores SIGINT for it, since Ctrl-C is not for it; an explicit SIGINT is
    meant."""
    script = 'trap "" TERM; "$0" "$@" & echo $!; wait $!; echo ended $?'
    with subprocess.Popen(["sh", "-c", script, support.BINARY, str(busy.pid), "perf", "--cc", "-d", "600s",
                           "-o", str(tmp_path / "run.profile")], start_new_session=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True) as shell:
        pid = int(shell.stdout.readline())
        until(lambda: "hrtimer_nanosleep" in profiles.wchan(pid))
        os.kill(pid, signal.SIGINT)
        out, err = shell.communicate(timeout=120)
    assert "the samples" in out and out.endswith("ended 0\n"), (out, err)
    assert rows(tmp_path / "run.profile", "SELECT ended FROM recording") == ["interrupted"]


def test_names_after_an_interrupted_recording(busy, gate, tmp_path):
    """The Ctrl-C that ends the recording does not skip the names."""
    file = tmp_path / "run.profile"
    process = perf(gate, busy.pid, "perf", "--cc", "-d", "600s", "-o", file)
    profiles.samples(process)
    process.send_signal(signal.SIGINT)
    gate.await_met(process.pid)
    assert support.catches(process.pid)
    gate.open()
    code, out, err = end_of(process)
    assert code == OK and "the samples" in out and not err, (code, out, err)
    assert not unnamed(file) and rows(file, "SELECT ended FROM recording") == ["interrupted"]


def test_two_interrupts_end_the_naming(busy, gate, tmp_path, probing):
    file = tmp_path / "run.profile"
    process = perf(gate, busy.pid, "perf", "--cc", "-d", "1s", "-o", file)
    gate.await_met(process.pid)
    interrupt_naming(process)
    process.send_signal(signal.SIGINT)
    code, out, err = end_of(process)
    assert code == -signal.SIGINT and not out and not err, (code, out, err)
    assert unnamed(file)
    assert json.loads(probing(file, "perf", "--json").out)["ended"] == "the recording was not finished"
    assert busy.alive()


def test_names_of_a_started_program(program, gate):
    """Its exit code is ours; while it runs Ctrl-C is for the program."""
    process = perf(gate, "perf", "--cc", "--", program, 0.3)
    gate.await_met(process.pid)
    interrupt_naming(process)
    gate.open()
    code, out, err = end_of(process)
    assert code == 7 and out == "ready\n" and "shown by their addresses" in err, (code, out, err)


def test_a_started_program_ends_with_its_terminal(program, tmp_path):
    """As with 'ssh -t HOST probing perf -- PROGRAM': only we get the terminal's hangup."""
    page = tmp_path / "run.html"
    with Terminal("perf", "-o", page, "--", program, 600) as terminal:
        terminal.until("ready")
        terminal.hang_up()
        assert terminal.process.wait(timeout=120) == FAILED, "there is nothing to print to"
    assert page.stat().st_size > 10000


def test_a_terminal_says_that_names_are_looked_for(busy, gate):
    with Terminal(busy.pid, "perf", "--cc", "-d", "1s", **gate.env) as terminal:
        terminal.until("naming C functions; Ctrl-C leaves their addresses", timeout=120)
        gate.await_met(terminal.process.pid)
        terminal.send("\x03")
        until(lambda: not support.catches(terminal.process.pid))
        gate.open()
        said, code = terminal.end()
    assert code == OK and "shown by their addresses" in said and re.search(r"spins\+0x|fun_[0-9a-f]+ +\[spins\]", said), said


def test_stop_waits_for_the_end(busy, gate, tmp_path, probing, monkeypatch):
    """However long it takes; a message names the wait."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    file = tmp_path / "run.profile"
    begun = end_of(perf(gate, busy.pid, "perf", "--cc", "--background", "--json", "-o", file))
    assert begun[0] == OK, begun
    recorder = json.loads(begun[1])["recorder"]
    process = perf(gate, busy.pid, "perf", "--stop")
    said = process.stderr.readline()
    assert "process %d writes the rest of %s" % (recorder, file) in said and "Ctrl-C" in said, said
    gate.await_met(recorder)
    assert process.poll() is None
    gate.open()
    code, out, err = end_of(process)
    assert code == OK and out.startswith("%s: the samples" % file) and not err, (code, out, err)
    assert not unnamed(file) and rows(file, "SELECT ended FROM recording") == ["interrupted"]


def test_stop_tells_that_the_rest_was_not_written(busy, gate, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    file = tmp_path / "run.profile"
    begun = end_of(perf(gate, busy.pid, "perf", "--cc", "--background", "--json", "-o", file))
    assert begun[0] == OK, begun
    process = perf(gate, busy.pid, "perf", "--stop")
    gate.await_met(json.loads(begun[1])["recorder"])
    gate.fill_the_disk()
    gate.open()
    code, out, err = end_of(process)
    assert code == FAILED and not out and "ended early" in err and str(file) in err, (code, out, err)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
def test_signals_end_a_recording(python, tmp_path, number):
    """As Ctrl-C does: 'timeout 60 probing PID perf -o x.html' writes the file."""
    page = tmp_path / "run.html"
    recording = profiles.Recording(python.pid, "-d", "600s", "-o", page)
    recording.samples()
    os.kill(recording.pid, number)
    code, out, err = recording.end()
    assert code == OK and not err and out.startswith("%s: " % page), (code, out, err)
    assert page.stat().st_size > 10000
    assert python.alive()


@pytest.mark.parametrize("name", ["run.profile", "run.html"])
def test_without_standard_descriptors(python, tmp_path, name):
    """No file of ours gets a standard descriptor's number, and unprintable output is an error."""
    file = tmp_path / name
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", support.BINARY, str(python.pid), "perf", "-d", "1s",
                           "-o", file], stderr=subprocess.PIPE, universal_newlines=True, check=False, timeout=120)
    assert done.returncode == FAILED and done.stderr == \
        "probing: cannot write the output: Bad file descriptor\n", done
    if name == "run.html":
        assert file.read_text().endswith("</body></html>\n")
    else:
        assert rows(file, "SELECT ended FROM recording") == ["time over"]


CHILDREN = """
import os, sys
print("ready", flush=True)
for line in sys.stdin:
    go, wait = os.pipe()
    child = os.fork()
    if not child:
        os.close(wait)
        os.set_blocking(go, False)
        while True:
            sum(range(1000))
            try:
                if not os.read(go, 1): os._exit(0)
            except BlockingIOError:
                pass
    os.close(go)
    print(child, flush=True)
    sys.stdin.readline()
    os.close(wait)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


def holds(recorder, pid):
    """Whether it has files of that process open."""
    folder = "/proc/%d/fd" % recorder
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            if os.readlink(os.path.join(folder, name)).startswith("/proc/%d/" % pid):
                return True
    return False


def test_ended_children_cost_no_descriptors(newest, tmp_path):
    """The names of their C functions come from a process that has the same files."""
    script = tmp_path / "forks_one_by_one.py"
    script.write_text(CHILDREN)
    file = tmp_path / "run.profile"
    with support.Target(newest, script) as target:
        assert target.line() == "ready"
        recording = profiles.Recording(target.pid, "--cc", "--subprocesses", "-d", "600s", "--json", "-o", file)
        recording.samples()
        children = []
        for _ in range(3):
            target.send(b"another\n")
            children.append(int(target.line()))
            until(lambda: holds(recording.pid, children[-1]))
            read = profiles.taken(file)
            until(lambda: profiles.taken(file) > read + 20)
            target.send(b"end\n")
            assert target.line() == "ended"
        until(lambda: not any(holds(recording.pid, child) for child in children))
        recording.interrupt()
        result = recording.result()
    assert {process["pid"] for process in result["processes"]} == {target.pid, *children}
    assert profiles.shares(result)["PyEval_EvalCode"] > 50, result
