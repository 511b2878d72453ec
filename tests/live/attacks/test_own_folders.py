# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that the program and its targets use: one that was there keeps its mode, and one that another user
was first to make keeps nobody out."""
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import support
from conftest import PROGRAMS
from environment import OK, wait_until
from files_support import (  # noqa: F401 (fixtures)
    AS_USER, FRAME, PYTHON, USER, folder, give, needs_root, program, run, theirs, write)
from test_later_features import BUSY
from test_rings_of_strangers import AGENT, WRITER, package  # noqa: F401 (fixture)

pytestmark = needs_root
OTHER = USER + 1
BASE = Path("/tmp/probing-%d" % USER)
RING = dict(PROBING_AGENT=str(AGENT))


def dump(process, place):
    return run(process.pid, "dump", env=dict(os.environ, XDG_CACHE_HOME=str(place.parent)))


def note(process, place):
    env = dict(os.environ, XDG_RUNTIME_DIR=str(place.parent))
    done = run(process.pid, "perf", "--background", "--duration", "60", env=env)
    run(process.pid, "perf", "--stop", env=env)
    return done


def crash(process, place):
    return run(process.pid, "inject", "-c", "-D", "crash.folder=%s" % place)


def state(_, place):
    words = [support.BINARY, "cluster", "ship", "--to", "clickhouse://127.0.0.1:1/none", "--state", str(place)]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as daemon:
        wait_until(lambda: os.listdir(place) or daemon.poll() is not None)
        daemon.terminate()


def history(_, place):
    return run("query", "-i", "/dev/null", env=dict(os.environ, XDG_STATE_HOME=str(place.parent)))


def ring(_, place):
    subprocess.run([PYTHON, "-c", WRITER, str(support.ROOT / "package")], stdin=subprocess.DEVNULL, timeout=60,
                   env=dict(RING, PROBING_DATA_DIR=str(place), PATH=os.environ["PATH"]),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


# Each place whose folder a user or an environment chooses.
PLACES = {"cache": dump, "notes": note, "crash.folder": crash, "--state": state, "history": history,
          "PROBING_DATA_DIR": ring}


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o775, 0o777, 0o1777])
@pytest.mark.parametrize("use", PLACES.values(), ids=PLACES)
def test_a_folder_that_is_there_keeps_its_mode(folder, use, mode):
    """It is used if nobody else may write to it, and then gets files; else it stays empty."""
    place = folder / "base" / "probing"
    place.parent.mkdir()
    place.mkdir()
    place.chmod(mode)
    with program(BUSY, "burn", "burn.py", user=0, group=0, extra_groups=[]) as process:
        use(process, place)
    assert place.stat().st_mode & 0o7777 == mode
    assert not list(place.iterdir()) or not mode & 0o022


@pytest.fixture(params=[(OTHER, 0o700), (OTHER, 0o755), (0, 0o755), (USER, 0o777)],
                ids=["another's", "another's, open", "root's", "open"])
def taken(request):
    """/tmp/probing-UID, which is not its user's alone; nothing may come to lie there."""
    shutil.rmtree(BASE, ignore_errors=True)
    owner, mode = request.param
    BASE.mkdir()
    BASE.chmod(mode)
    os.chown(BASE, owner, owner)
    yield BASE
    assert os.listdir(BASE) == [] and BASE.stat().st_mode & 0o7777 == mode
    for path in (BASE, *others()):
        shutil.rmtree(path)


def others():
    return sorted(Path("/tmp").glob(BASE.name + ".*"))


def the_other():
    """The one folder that is used in its place."""
    place, = others()
    assert re.fullmatch(BASE.name + r"\.[0-9a-f]{8}", place.name)
    assert (place.stat().st_uid, place.stat().st_mode & 0o7777) == (USER, 0o700)
    return place


def test_rings_where_the_folder_is_taken(package, taken):  # noqa: F811
    """They are read while the process lives, and found when it has ended; two processes use the same folder."""
    environment = {"PROBING_AGENT": str(package.parent / AGENT.name), "PATH": os.environ["PATH"]}
    sql = "SELECT count(*) AS n FROM user.mine"
    with program(WRITER, str(package), env=environment) as process, \
            program(WRITER, str(package), env=environment) as second:
        for one in (process, second):
            done = run(one.pid, "query", "-f", "json", sql)
            assert (done.returncode, json.loads(done.stdout)) == (OK, [{"n": 10}]), done
        pid = process.pid
        place = the_other()
    listed = {row["pid"] for row in json.loads(run("list", "--dead", "--json").stdout)}
    assert pid in listed
    done = run(pid, "query", "-f", "json", sql)
    assert (done.returncode, json.loads(done.stdout)) == (OK, [{"n": 10}]), done
    assert str(place).encode() in done.stderr, done


def test_crash_records_where_the_folder_is_taken(taken, tmp_path):
    script = (PROGRAMS / "crashing.py").read_text()
    with support.Program([PYTHON, "-c", script], env={"HOME": "/nowhere", "PATH": os.environ["PATH"]},
                         **AS_USER) as process:
        assert process.line() == "ready"
        done = run(process.pid, "inject", "-c")
        assert done.returncode == OK, done
        process.send(b"main SIGABRT\n")
        assert process.line() == "dying" and process.wait()[0] == -signal.SIGABRT
    kept = tmp_path / "state" / "crashes" / str(USER)
    record, = (the_other() / "crashes").glob("crash-*.core")
    with subprocess.Popen([support.BINARY, "node", "--crashes", "--state", str(tmp_path / "state")],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as node:
        wait_until(lambda: (kept / record.name).exists() or node.poll() is not None)
        node.terminate()
    assert (kept / record.name).read_bytes() == record.read_bytes()


def test_the_cache_where_the_folder_is_taken(folder, taken):
    """A user without a home."""
    copy = write(folder / "probing", Path(support.BINARY).read_bytes(), 0o755)
    with program(BUSY, "burn", "burn.py") as process:
        done = subprocess.run([str(copy), str(process.pid), "dump", "--native"], env={"PATH": os.environ["PATH"]},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, check=False, **AS_USER)
    assert done.returncode == OK, done
    assert any(path.is_file() for path in the_other().iterdir())
