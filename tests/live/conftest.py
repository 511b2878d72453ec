# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the live tests: the command, the interpreters, and programs to look at.

The command is $PROBING_BINARY, or `probing` in the folder $PROBING_BUILD, or build/probing.
"""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import tempfile
import zlib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
if "PROBING_BUILD" in os.environ:
    os.environ.setdefault(
        "PROBING_BINARY", str(Path(os.environ["PROBING_BUILD"]).resolve() / "probing"))
sys.path[:0] = [str(HERE), str(HERE.parent)]
# Fixtures that several folders share.
sys.path += sorted({str(path.parent) for path in HERE.glob("*/test_*.py")})
# Without a bytecode cache, each worker would take seconds to compile all tests again.
if os.access(HERE.parents[1] / "build", os.W_OK):
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(HERE.parents[1] / "build" / "bytecode-of-tests")

import own_gdb  # noqa: E402,F401
import faults  # noqa: E402
import ledgers  # noqa: E402
import support  # noqa: E402
import verdict  # noqa: E402

PROGRAMS = HERE / "programs"
VERSIONS = [(3, minor) for minor in range(4, 16)]
# On how many interpreters a test runs, at most; 0: on all that it is meant for.
SAMPLE = int(os.environ.get("PROBING_SAMPLE", "0"))
# A file with the names of tests that need not run.
PASSED = os.environ.get("PROBING_PASSED")
# Names of parameters that are interpreters, or depend on one.
OF_INTERPRETERS = "interpreter|unforgiving|libc|sleeping"
# Seconds after which a test has hung: the slowest takes some 60. The long forms have no limit.
HUNG = 0 if os.environ.get("PROBING_LONG") else 400


# pytest-xdist may, rarely, run a worker in another thread, where no handler can be set.
MAIN_THREAD = threading.current_thread() is threading.main_thread()


def _hung(_signal, _frame):
    pytest.fail("the test did not end within %d s" % HUNG)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol():
    """Ends a test that hangs, so that it fails by name instead of holding up all others."""
    if MAIN_THREAD:
        signal.signal(signal.SIGALRM, _hung)
        signal.alarm(HUNG)
    yield
    signal.alarm(0)


def pytest_configure(config):
    # Started in the background, or by nohup, we and all our children would ignore them.
    if MAIN_THREAD:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
            signal.signal(signal.SIGHUP, lambda *_: None)
    config.addinivalue_line("markers", "every_interpreter: runs on all, also in a sample")
    if not os.access(support.BINARY, os.X_OK):
        pytest.exit("%s is missing: run make first" % support.BINARY, 2)


def _without_interpreter(item):
    """A test without its interpreter; and the name of that interpreter."""
    callspec = getattr(item, "callspec", None)
    names = [repr(value) for value in callspec.params.values()
             if isinstance(value, support.Interpreter)] if callspec else []
    if len(names) != 1:
        return None, None
    name = item.nodeid.split("[")[0].split("/")[-1]
    return (name, callspec.id.replace(names[0], "", 1)), names[0]


def sample(names, key):
    """SAMPLE of the interpreters, far from each other. The choice depends on the test, so that all are
    used by some tests, and always by the same ones."""
    names = list(dict.fromkeys(names))
    first = zlib.crc32(repr(key).encode())
    return {names[(first + i * len(names) // SAMPLE) % len(names)] for i in range(SAMPLE)}


def leave_out(config, items, dropped):
    """Takes away these of the tests."""
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=dropped)


def without_long_ones(config, items):
    """Takes away the tests that `make check` has no time for."""
    listed = {name for name, _ in ledgers.rows("long.txt")}
    leave_out(config, items, {item for item in items if "%s::%s" % (item.path.name, item.originalname) in listed})


def without_passed_ones(config, items):
    """Takes away the tests that have passed elsewhere just now."""
    passed = set(Path(PASSED).read_text(encoding="utf-8").splitlines())
    leave_out(config, items, {item for item in items if item.nodeid in passed})


def name_missing_ones(items):
    """Skips tests of a kind of interpreters that is not installed, with a reason: pytest gives none."""
    for item in items:
        for number, mark in enumerate(item.own_markers):
            said = str(mark.kwargs.get("reason", ""))
            if mark.name == "skip" and re.match(r"got empty parameter set (for \(|\[')(%s)\b" % OF_INTERPRETERS, said):
                item.own_markers[number] = pytest.mark.skip(
                    reason="no interpreter of this kind here: 'make test-interpreters' gets some").mark


def slowest_first(items):
    """Orders files by the durations in long.txt, which are for one interpreter: at the end of a parallel
    run no worker is left with a long file alone."""
    seconds = dict(ledgers.rows("long.txt"))
    interpreters, takes = {}, {}
    for item in items:
        key = item.path, item.originalname
        interpreters.setdefault(key, set()).add(_without_interpreter(item)[1])
        takes[item.path] = takes.get(item.path, 0) + 0.1
    for (path, name), names in interpreters.items():
        takes[path] += float(seconds.get("%s::%s" % (path.name, name), 0)) * len(names)
    items.sort(key=lambda item: -takes[item.path])


def pytest_collection_modifyitems(config, items):
    """Chooses the tests of this run and their order."""
    name_missing_ones(items)
    if support.MAIN_PATH:
        without_long_ones(config, items)
    if PASSED:
        without_passed_ones(config, items)
    if SAMPLE:
        without_most_interpreters(config, items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        slowest_first(items)


def without_most_interpreters(config, items):
    """Takes away, of each test that runs on many interpreters, all but a sample of them."""
    groups = {}
    for item in items:
        key, name = _without_interpreter(item)
        if key and not item.get_closest_marker("every_interpreter"):
            groups.setdefault(key, []).append((name, item))
    dropped = set()
    for key, members in groups.items():
        kept = sample([name for name, _ in members], key)
        dropped.update(item for name, item in members if name not in kept)
    leave_out(config, items, dropped)


def missing_interpreters():
    """Names of the versions and kinds of builds that no interpreter here has; none if it runs on chosen ones."""
    if support.CHOSEN:
        return
    have = {interpreter.version for interpreter in support.INTERPRETERS}
    for version in VERSIONS:
        if version not in have:
            yield "%d.%d" % version
    if not any(interpreter.free_threaded for interpreter in support.INTERPRETERS):
        yield "a free-threaded build"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    verdict.skip_without_tool(call)
    _remove_folder(item, call)


def _remove_folder(item, call):
    """Removes the folder of a test that is over and has not failed: pytest keeps those of three runs, and
    the core files in them are 8 GB for each."""
    if call.excinfo and not call.excinfo.errisinstance(pytest.skip.Exception):
        item.failed = True
    folder = item.funcargs.get("tmp_path") if hasattr(item, "funcargs") else None
    if call.when == "teardown" and folder and not hasattr(item, "failed"):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def same_folder():
    """A test that leaves the process in its folder, which is then removed, breaks what comes after it."""
    before = os.getcwd()
    yield
    assert os.getcwd() == before, "the test has changed the current folder: use monkeypatch.chdir()"


def pytest_runtest_logreport(report):
    verdict.note(report)


def pytest_sessionfinish(session):
    """A worker of pytest-xdist prints and judges nothing."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["reported"] = support.REPORTED
    else:
        session.exitstatus = verdict.status(session.exitstatus)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    support.REPORTED.extend(getattr(node, "workeroutput", {}).get("reported", []))


def pytest_terminal_summary(terminalreporter):
    missing = list(missing_interpreters())
    if missing:
        terminalreporter.write_line(
            "NOT TESTED, no interpreter here: %s ('make test-interpreters' gets some)"
            % ", ".join(missing))
    for line in [*support.REPORTED, *verdict.lines()]:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def newest():
    """The newest ordinary interpreter: for tests that do not depend on the version."""
    plain = [i for i in support.INTERPRETERS if i.plain]
    assert plain, "no Python 3 interpreter found"
    return plain[-1]


@pytest.fixture(params=support.INTERPRETERS, ids=repr)
def interpreter(request):
    """Every interpreter there is, one after the other."""
    return request.param


@pytest.fixture(scope="session")
def build():
    """Programs and libraries for injection."""
    made = faults.Build()
    yield made
    made.remove()
    faults.write_counts()


@pytest.fixture
def target(newest):
    """target(PROGRAM, *arguments, interpreter=…, env=…): starts tests/live/programs/PROGRAM, waits
    until it says that it is ready, and kills it at the end of the test."""
    started = []

    def start(program, *arguments, interpreter=newest, env=None):
        process = support.Target(interpreter, PROGRAMS / program, *arguments, env=env)
        started.append(process)
        line = process.line()
        assert line.split()[0] == "ready", line
        process.ready = line.split()[1:]
        return process

    yield start
    for process in started:
        process.__exit__()


class Result:
    """Exit status and output of a run of the command."""

    def __init__(self, arguments, code, out, err):
        self.arguments, self.code, self.out, self.err = arguments, code, out, err

    def __repr__(self):
        return "probing %s: exit code %d\n--- stdout\n%s--- stderr\n%s" % (
            " ".join(map(str, self.arguments)), self.code, self.out, self.err)


def run(*arguments, env=None, cwd=None, **options):
    """Runs the command with @env instead of the environment's variables for probing."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("PROBING_") and key != "NO_COLOR"}
    environment.update(env or {})
    done = subprocess.run(
        [support.BINARY] + [str(argument) for argument in arguments], env=environment, cwd=cwd,
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE, timeout=support.count(120, 1800), check=False, **options)
    return Result(arguments, done.returncode, (done.stdout or b"").decode(), done.stderr.decode())


@pytest.fixture
def open_folder():
    """A folder that all users may enter: pytest closes its own to others at any time."""
    folder = Path(tempfile.mkdtemp(prefix="probing-open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def somebody():
    """A user without files here: not even a folder in /tmp that another user has made in that name."""
    first = 58000 + 100 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    user = next(user for user in range(first, first + 100) if not os.path.lexists("/tmp/probing-%d" % user))
    yield user
    shutil.rmtree("/tmp/probing-%d" % user, ignore_errors=True)


@pytest.fixture
def shared():
    """Memory that the target and the test both see."""
    memory = support.Shared()
    yield memory
    memory.close()


@pytest.fixture(scope="session")
def probing():
    """probing(*arguments): runs the command; .code, .out, .err."""
    return run


@pytest.fixture(scope="session")
def probing_in_terminal():
    """The same with stdout a terminal; returns its output."""

    def run_there(*arguments, env=None):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("PROBING_") and key != "NO_COLOR"}
        environment.update({"TERM": "xterm"}, **(env or {}))
        leader, follower = pty.openpty()
        with subprocess.Popen(
                [support.BINARY] + [str(argument) for argument in arguments], env=environment,
                stdin=subprocess.DEVNULL, stdout=follower, stderr=subprocess.DEVNULL) as process:
            os.close(follower)
            printed = b""
            try:
                while select.select([leader], [], [], 60)[0]:
                    chunk = os.read(leader, 65536)
                    if not chunk:
                        break
                    printed += chunk
            except OSError:  # the other side is closed
                pass
            finally:
                os.close(leader)
                process.wait(60)
        return printed.decode().replace("\r\n", "\n")

    return run_there
