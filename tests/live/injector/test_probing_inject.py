# SPDX-License-Identifier: GPL-3.0-or-later
"""probing-inject: the same as `probing inject --library`, alone and in strange places."""
import json
import os
import re
import shutil
import subprocess

import pytest

import environment
import faults
import support
from environment import FAILED, NO_PROCESS, OK, UNSUPPORTED
from faults import Checked, Look, is_mapped, wait_until_same

USAGE = 2
FOLDER = os.path.dirname(support.BINARY)
DYNAMIC = os.path.join(FOLDER, "probing-inject")
STATIC = os.path.join(FOLDER, "probing-inject-static")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root")
needs_static = pytest.mark.skipif(not os.path.exists(STATIC),
                                  reason="not built: make probing-inject-static")


@pytest.fixture(scope="module")
def build():
    made = faults.Build()
    yield made
    made.remove()


@pytest.fixture
def idle(build):
    with Checked(build.program("fault_places"), "idle") as target:
        yield target


@pytest.fixture(params=[DYNAMIC, pytest.param(STATIC, marks=needs_static)],
                ids=["dynamic", "static"])
def program(request):
    return request.param


class Done:
    """Exit status and output of a run."""

    def __init__(self, command):
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              check=False)
        self.code = done.returncode
        self.out, self.err = done.stdout.decode(), done.stderr.decode()

    def __repr__(self):
        return "exit code %d\n--- stdout\n%s--- stderr\n%s" % (self.code, self.out, self.err)


def run(program, *words, before=()):
    return Done([*before, program, *words])


def test_c_program(program, build, idle):
    library, before = build.library(), Look(idle.pid)
    done = run(program, idle.pid, library, "fault_touch", "four")
    assert done.code == OK, done
    first, second = done.out.split("\n")[:2]
    assert first.startswith("%s: loaded into process %d by its path; thread %d paused for " % (
        library, idle.pid, idle.pid))
    assert second == "fault_touch() returned 1004"
    wait_until_same(before)
    idle.wait_for_progress()
    again = run(program, "-t", idle.pid, library)
    assert (again.code, again.out) == (
        OK, "%s: already loaded in process %d\n" % (library, idle.pid))


def test_same_as_probing_inject(program, build, idle):
    """The same words as the larger program, with either syntax."""
    ways = [["-p", idle.pid, "-L", None, "-s", "fault_touch", "--arg", "xy", "--json"],
            ["--target", idle.pid, None, "fault_touch", "xy", "-j"],
            [idle.pid, "--library", None, "fault_touch", "--arg=xy", "--json"]]
    for words in ways:
        library = build.library()
        done = run(program, *[library if word is None else word for word in words])
        assert done.code == OK, done
        ours = json.loads(done.out)
        code, theirs, err = faults.inject(idle.pid, build.library(), "-s", "fault_touch",
                                          "--arg", "xy")
        assert code == OK, err
        assert list(ours) == list(theirs) and ours["value"] == theirs["value"] == 1002
        assert ours["library"] == str(library)


def test_python(program, build, newest):
    with support.Target(newest, faults.PROGRAMS / "sleeper.py") as target:
        assert target.line() == "ready"
        before = Look(target.pid)
        done = run(program, target.pid, build.library(), "fault_touch")
        assert done.code == OK and "fault_touch() returned 1000" in done.out, done
        wait_until_same(before)
        assert target.alive()


def test_exit_codes(program, build, idle, probing, tmp_path):
    """Messages and codes are those of probing inject."""
    text = tmp_path / "text.so"
    text.write_text("no library")
    library = build.library()
    for code, words, theirs in [
            (USAGE, [idle.pid, tmp_path / "none.so"], ["-L", tmp_path / "none.so"]),
            (USAGE, [idle.pid, text], ["-L", text]),
            (USAGE, [idle.pid, library, "nothing"], ["-L", library, "-s", "nothing"]),
            (USAGE, [idle.pid, library, "--arg", "x"], ["-L", library, "--arg", "x"])]:
        done, same = run(program, *words), probing("-t", idle.pid, "inject", *theirs)
        assert done.code == same.code == code, (done, same)
        assert done.err == same.err.replace("probing: ", "probing-inject: ", 1)
    assert run(program, 2 ** 22 - 1, library).code == NO_PROCESS
    with Checked(build.program("fault_places", "-static"), "idle") as target:
        done = run(program, target.pid, library)
        assert done.code == UNSUPPORTED and "statically linked" in done.err
    assert not is_mapped(idle.pid, library)


@pytest.mark.parametrize("words, said", [
    ([], "Usage: probing-inject"),
    (["12x", "library.so"], "'12x' is not a process id"),
    (["0", "library.so"], "'0' is not a process id"),
    (["99999999999", "library.so"], "'99999999999' is not a process id"),
    (["python", "library.so"], "'python' is not a process id"),
    (["1"], "no library given"),
    (["-L", "library.so"], "no process given"),
    (["1", "library.so", "start", "text", "more"], "unexpected word 'more'"),
    (["-p", "1", "library.so", "start", "text", "more"], "unexpected word 'more'"),
    (["1", "library.so", "--nothing"], "has no option '--nothing'"),
    (["1", "library.so", "--timeout", "soon"], "needs a duration")])
def test_wrong_words(words, said):
    done = run(DYNAMIC, *words)
    assert done.code == USAGE and said in done.err and not done.out, done


def test_help_and_page_know_all_options():
    help_text, page = run(DYNAMIC, "--help"), run(DYNAMIC, "--man")
    assert help_text.code == page.code == OK
    names = re.findall(r"^  (?:-\w, |    )--([a-z]+)", help_text.out, re.M)
    assert {"library", "symbol", "arg", "timeout", "json", "target", "pid"} <= set(names)
    for name in names:
        assert "\\-\\-%s\\fR" % name in page.out
    assert run(DYNAMIC, "--version").out.split()[1] == run(
        support.BINARY, "--version").out.split()[1]
    environment.need("man")
    checked = subprocess.run(["man", "--warnings", "-l", "-"], input=page.out.encode(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                             env=dict(os.environ, MANPAGER="cat", LC_ALL="C.UTF-8"))
    assert checked.returncode == 0 and not checked.stderr, checked.stderr


def test_needs_few_libraries():
    """No SQL, no debug information: its parts suffice to load a library."""
    needed = subprocess.run(["readelf", "-dW", DYNAMIC], stdout=subprocess.PIPE, check=True)
    for name in ("sqlite", "pcre", "dwarf", "bfd", "readline"):
        assert name not in needed.stdout.decode().lower()
        symbols = subprocess.run(["nm", DYNAMIC], stdout=subprocess.PIPE, check=True).stdout
        assert not re.search(r" T (sqlite3_|pcre2_|dwarf_|bfd_|rl_)", symbols.decode())


@needs_root
@needs_static
@pytest.mark.parametrize("proc", [True, False], ids=["with-proc", "without-proc"])
def test_static_in_empty_root(build, idle, tmp_path, proc):
    """It is the only program there is, and sees processes through /proc alone."""
    library = build.library()
    shutil.copy(STATIC, tmp_path / "probing-inject")
    shutil.copy(library, tmp_path / "library.so")
    (tmp_path / "proc").mkdir()
    before = Look(idle.pid)
    script = '%s exec chroot "$0" /probing-inject "$@"' % (
        'mount -t proc proc "$0/proc" &&' if proc else "")
    done = run(tmp_path, idle.pid, "/library.so", "fault_touch", "five5", "--json",
               before=["unshare", "-m", "sh", "-c", script])
    if proc:
        assert done.code == OK, done
        out = json.loads(done.out)
        assert (out["way"], out["value"]) == ("from memory", 1005)
    else:
        assert done.code == FAILED and "/proc is not mounted here" in done.err, done
    wait_until_same(before)
    idle.wait_for_progress()


@needs_root
@needs_static
def test_static_into_its_own_empty_root(build, tmp_path):
    """The target lives there too, with nothing but its C library."""
    program, library = build.program("fault_places"), build.library()
    listing = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    for path in [word for word in listing.split() if word.startswith("/")]:
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path[1:])
    for path, name in [(program, "program"), (STATIC, "probing-inject"), (library, "library.so")]:
        shutil.copy(path, tmp_path / name)
    (tmp_path / "shared").write_bytes(bytes(4096))
    (tmp_path / "proc").mkdir()
    script = 'mount -t proc proc "$0/proc" && exec chroot "$0" /program /shared idle'
    with support.Program(["unshare", "-m", "sh", "-c", script, tmp_path]) as target:
        assert target.line() == "ready"
        done = run("/probing-inject", target.pid, "/library.so", "fault_touch", "--json",
                   before=["nsenter", "-m", "-r", "-t", target.pid])
        assert done.code == OK, done
        assert json.loads(done.out)["way"] == "by its path"
        environment.wait_until(lambda: len(support.thread_ids(target.pid)) == 1)
        assert target.alive()
