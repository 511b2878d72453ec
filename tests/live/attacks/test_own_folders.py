# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that the program and its targets use: an existing one keeps its mode, and one made first by
another user keeps nobody out."""
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import jobs
import support
from conftest import PROGRAMS
from environment import OK, wait_until
from files_support import (  # noqa: F401 (fixtures)
    AS_USER, FRAME, PYTHON, USER, folder, give, needs_root, program, run, theirs, write)
from terminal import Terminal
from test_later_features import BUSY, sticky  # noqa: F401 (fixture)
from test_outputs import WAYS, way_by_anothers_link
from test_rings_of_strangers import AGENT, WRITER, package  # noqa: F401 (fixture)

pytestmark = needs_root
OTHER = USER + 1
NOWHERE = "clickhouse://127.0.0.1:1/none"
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


def until_used(place, *words, **variables):
    """Something that does not end by itself, until there is a file in the folder, or it refuses it."""
    with subprocess.Popen([support.BINARY, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env=dict(os.environ, **variables)) as daemon:
        try:
            wait_until(lambda: place.is_dir() and os.listdir(place) or daemon.poll() is not None, 30)
        finally:
            daemon.terminate()


def state(_, place):
    until_used(place, "cluster", "ship", "--to", NOWHERE, "--state", place)


def history(_, place):
    with Terminal("query", XDG_STATE_HOME=str(place.parent)) as typing:
        typing.until("probing> ")
        typing.send("SELECT 40 + 2;\r")
        typing.until("probing> ")
        typing.send("\x04")
        assert typing.end()[1] == OK


def ring(_, place):
    subprocess.run([PYTHON, "-c", WRITER, str(support.ROOT / "package")], stdin=subprocess.DEVNULL, timeout=60,
                   env=dict(RING, PROBING_DATA_DIR=str(place), PATH=os.environ["PATH"]),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def recording(_, place):
    with program(WRITER, str(support.ROOT / "package"), user=0, group=0, extra_groups=[], env=dict(os.environ)) as process:
        until_used(place.parent, process.pid, "record", "-o", place.parent)


def kept(_, place):
    until_used(place, "node", "--crashes", "--state", place)


def listening(process, place):
    done = run(process.pid, "inject", "--listen", "127.0.0.1:0", env=dict(os.environ, XDG_RUNTIME_DIR=str(place.parent)))
    run(process.pid, "eject")
    return done


def ranks(_, place):
    with jobs.ranks("/usr/bin/python3", 1):
        return run("cluster", "sample", jobs.ADDRESS, "--duration", "0.2",
                   env=dict(os.environ, TMPDIR=str(place.parent)))


def script_history(_, place):
    """The history at a terminal; here only the choice of its folder."""
    code = "from probing import _prompt; print(_prompt.history())"
    return subprocess.run([PYTHON, "-c", code], check=True, stdin=subprocess.DEVNULL, timeout=60, cwd="/",
                          env=dict(PATH=os.environ["PATH"], PYTHONPATH=str(support.ROOT / "package"),
                                   XDG_STATE_HOME=str(place.parent)))


def shipped(_, place):
    until_used(place, "cluster", "ship", "--to", NOWHERE, STATE_DIRECTORY=str(place))


def in_target(variable, *words):
    """The agent, in a program of that environment."""
    def use(_, place):
        env = {"PATH": os.environ["PATH"], variable: str(place.parent)}
        with program(BUSY, "burn", "burn.py", user=0, group=0, extra_groups=[], env=env) as process:
            return run(process.pid, *words)
    return use


def launched(_, place):
    return run("launch", "--", PYTHON, "-c", "pass", env=dict(os.environ, PROBING_CRASH="folder=%s" % place))


# Each place whose folder a user or an environment chooses.
PLACES = {"cache": dump, "notes": note, "crash.folder": crash, "--state": state, "history": history,
          "PROBING_DATA_DIR": ring}


ALL_PLACES = {
    **PLACES, "record --output": recording, "node --state": kept, "XDG_RUNTIME_DIR --listen": listening,
    "TMPDIR": ranks, "XDG_STATE_HOME in Python": script_history, "STATE_DIRECTORY": shipped,
    "XDG_RUNTIME_DIR of a target": in_target("XDG_RUNTIME_DIR", "eval", "1"),
    "XDG_STATE_HOME of a target": in_target("XDG_STATE_HOME", "inject", "-c"),
    "HOME of a target": in_target("HOME", "inject", "-c"), "PROBING_CRASH": launched,
}
# The variables that name a folder, with the rows of them.
VARIABLES = {
    "PROBING_DATA_DIR": ["PROBING_DATA_DIR"], "TMPDIR": ["TMPDIR"], "STATE_DIRECTORY": ["STATE_DIRECTORY"],
    "XDG_CACHE_HOME": ["cache"], "XDG_RUNTIME_DIR": ["notes", "XDG_RUNTIME_DIR --listen", "XDG_RUNTIME_DIR of a target"],
    "XDG_STATE_HOME": ["history", "XDG_STATE_HOME of a target", "XDG_STATE_HOME in Python"], "HOME": ["HOME of a target"],
    "XDG_CONFIG_HOME": [], "SSL_CERT_DIR": [],  # only read
}


def test_every_variable_that_names_a_folder_has_a_row():
    sources = [path for path in support.ROOT.glob("*/**/*.[ch]") if path.parts[-2] != "build"
               and not {"tests", "build"} & set(path.relative_to(support.ROOT).parts)]
    named = {name for path in sources for name in re.findall(
        r'"(HOME|TMPDIR|[A-Z_]+_(?:HOME|DIR|FOLDER|DIRECTORY))"', path.read_text())}
    assert named == set(VARIABLES) and {row for rows in VARIABLES.values() for row in rows} <= set(ALL_PLACES)


@pytest.mark.parametrize("below, kind", [("probing", "direct"), *(("new/probing", kind) for kind in WAYS)])
@pytest.mark.parametrize("use", ALL_PLACES.values(), ids=ALL_PLACES)
def test_no_link_of_another_on_the_way(folder, sticky, use, below, kind):  # noqa: F811
    """The path given to root leads through a link of another user, also behind links of root's."""
    behind = folder / "behind"
    behind.mkdir()
    way = way_by_anothers_link(kind, folder, sticky, behind)
    with program(BUSY, "burn", "burn.py", user=0, group=0, extra_groups=[]) as process:
        use(process, way / below)
    assert os.listdir(behind) == []


class Seen:
    """Whether anything was ever made in a folder: some of it is removed again."""

    def __init__(self, path):
        self.path = path
        os.utime(path, (1, 1))

    def any(self):
        return self.path.stat().st_mtime != 1


@pytest.mark.parametrize("use", ALL_PLACES.values(), ids=ALL_PLACES)
def test_own_links_on_the_way_are_followed(folder, sticky, use):  # noqa: F811
    behind = folder / "behind"
    behind.mkdir(mode=0o700)
    (behind / "base").mkdir(mode=0o700)
    (sticky / "sub").symlink_to(behind)
    seen = Seen(behind / "base")
    with program(BUSY, "burn", "burn.py", user=0, group=0, extra_groups=[]) as process:
        use(process, sticky / "sub" / "base" / "probing")
    assert seen.any()


def test_a_link_that_is_changed_before_the_crash(folder, sticky):  # noqa: F811
    """The folder that was checked is used, or none."""
    script = (PROGRAMS / "crashing.py").read_text()
    behind = folder / "behind"
    for name in ("own", "behind"):
        (folder / name).mkdir(mode=0o700)
    link = sticky / "sub"
    link.mkdir()
    os.chown(link, USER, USER)
    with support.Program([PYTHON, "-c", script]) as process:
        assert process.line() == "ready"
        (link / "crashes").mkdir(mode=0o700)
        (behind / "crashes").mkdir(mode=0o700)
        done = run(process.pid, "inject", "-c", "-D", "crash.folder=%s" % (link / "crashes"))
        assert done.returncode == OK, done
        shutil.move(link, sticky / "before")
        link.symlink_to(behind)
        os.chown(link, USER, USER, follow_symlinks=False)
        process.send(b"main SIGABRT\n")
        assert process.line() == "dying" and process.wait()[0] == -signal.SIGABRT
    assert not list(behind.rglob("crash-*")) and not list((sticky / "before").rglob("crash-*"))


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
