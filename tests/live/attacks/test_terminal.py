# SPDX-License-Identifier: GPL-3.0-or-later
"""Traps of another user for root's commands: escape sequences, pipes in place of files, and links in place
of files that root writes."""
import json
import os
import subprocess
from pathlib import Path

import pytest

import support
import terminal
from environment import OK
from support import Program

VILLAIN = 2041  # used nowhere else: the folder in /tmp has its name
TARGET = (Path(__file__).parent / "terminal_target.py").read_text()
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root meets other users' processes")


@pytest.fixture(scope="module")
def python():
    """An interpreter that the other user can run, and the command can read."""
    for interpreter in support.INTERPRETERS:
        if interpreter.version < (3, 9):
            continue
        done = subprocess.run([interpreter.exe, "-c", "import ctypes, mmap, socket"], cwd="/",
                              user=VILLAIN, group=VILLAIN, extra_groups=[], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) \
            if os.access(interpreter.exe, os.X_OK) and reachable(interpreter.exe) else None
        if done and done.returncode == 0:
            return interpreter
    pytest.skip("the other user can run no interpreter of this machine")


def reachable(path):
    """Whether everybody may enter the folders that lead to it."""
    return all(folder.stat().st_mode & 0o001 for folder in Path(path).resolve().parents)


@pytest.fixture
def villain(python):
    """Starts the process of the other user with some code that it runs first."""
    started = []

    def start(code="pass"):
        process = Program([python.exe, "-c", TARGET, code], cwd="/", user=VILLAIN, group=VILLAIN,
                          extra_groups=[], env={"PATH": "/usr/bin:/bin"})
        started.append(process)
        assert process.line() == "ready"
        return process

    yield start
    for process in started:
        process.wait()  # closes its stdin: it removes its files and ends
        process.__exit__()


def run(*words, **options):
    """The command as root; its output as bytes."""
    options.setdefault("env", terminal.environment())
    return subprocess.run([support.BINARY, *map(str, words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
                          **options)


def assert_harmless(text):
    """Nothing in it that a terminal acts on."""
    for byte in b"\x1b\x07\x08\x00\r":
        assert bytes([byte]) not in text, text
    assert "\u202e" not in text.decode() and "\x9b" not in text.decode(), text


def line_of(pid, text):
    found, = (line for line in text.decode().splitlines() if line.split()[:1] == [str(pid)])
    return found


def served_at(pid):
    return {row["pid"]: row["served_at"] for row in json.loads(run("list", "--json").stdout)}[pid]


def test_list_shows_only_addresses(villain):
    process = villain("kept += [serve_file(1, EVIL + b':80\\n'), serve_file(2, b'127.0.0.1:81\\n'),"
                      "serve_file(3, b'a b:82'), serve_file(4, b'\\xe2\\x80\\xae:83\\n'),"
                      "serve_file(5, b'no address\\n')]")
    done = run("list")
    assert done.returncode == OK
    assert_harmless(done.stdout)
    shown = line_of(process.pid, done.stdout).split(" -c ")[0]
    assert "127.0.0.1:81" in shown and ":80" not in shown and "no address" not in shown, shown
    assert "a b" not in shown, shown
    # A name may have letters of any language: direction controls are escaped.
    assert "\\u202e:83" in shown, shown
    done = run("list", "--json")
    assert_harmless(done.stdout)
    assert sorted(served_at(process.pid).split(" ")) == ["127.0.0.1:81", "\u202e:83"]


def test_overview_and_why_are_escaped(villain):
    """Names of functions and files, and the command line."""
    process = villain("evil = '\\x1b]0;owned\\x07\\u202e'\n"
                      "def wait():\n    sys.stdin.read()\n"
                      "wait.__code__ = wait.__code__.replace(co_name=evil, co_filename='/x/' + evil, **(\n"
                      "    {'co_qualname': evil} if sys.version_info >= (3, 11) else {}))\n"
                      "print('ready', flush=True)\nwait()  # \x1b]0;owned\x07")
    support.wait_for_all_asleep(process.pid, 1)
    for words in (["overview", process.pid], ["overview"], ["overview", "--json", process.pid]):
        done = run(*words)
        assert done.returncode == OK, done
        assert_harmless(done.stdout)
        assert done.stdout.count(b"owned") >= 3, done.stdout
    # Its exit code says what is wrong with any process here.
    for words in (["why", process.pid], ["why", "--json", process.pid]):
        done = run(*words)
        assert done.returncode == OK or done.returncode >= 10, done
        assert_harmless(done.stdout)
        assert done.stdout.count(b"owned") >= 2, done.stdout


def test_overview_of_one_that_changes_all_the_time(python):
    """It calls exec again and again; the overview continues, and each row is about one program."""
    code = "import os, sys; os.execv(sys.executable, [sys.executable, '-S', '-c', os.environ['CODE']])"
    with Program([python.exe, "-S", "-c", "print('ready', flush=True); input(); " + code], cwd="/", user=VILLAIN,
                 group=VILLAIN, extra_groups=[], env={"PATH": "/usr/bin:/bin", "CODE": code}) as process:
        assert process.line() == "ready"
        command = [support.BINARY, "overview", "--json", "--watch=20ms", str(process.pid), str(os.getpid())]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as looking:
            assert json.loads(looking.stdout.readline())["pending"]  # the list alone
            for number in range(support.count(20, 300)):
                one, other = json.loads(looking.stdout.readline())["targets"]
                assert (one["pid"], other["pid"]) == (process.pid, os.getpid())
                assert other["main"]["state"] and not one["ended"], one
                assert one["main"] or one["unreadable"], one
                if not number:
                    process.send(b"\n")
            looking.terminate()


def test_list_does_not_wait_for_a_pipe(villain):
    process = villain("os.mkfifo(path_of('serve-%d-8' % os.getpid()));"
                      "os.symlink('/dev/zero', path_of('serve-%d-9' % os.getpid()));"
                      "kept += [serve_file(1, b'127.0.0.1:81\\n')]")
    assert served_at(process.pid) == "127.0.0.1:81"
    done = run("-t", process.pid, "agent", "status")
    assert b"127.0.0.1:81" in done.stdout, done


def test_list_shows_a_few_of_many(villain):
    process = villain("kept += [serve_file(n, b'127.0.0.1:%d\\n' % n) for n in range(1, 100)]")
    shown = served_at(process.pid).split(" ")
    assert len(shown) == 17 and shown[-1] == "\u2026", shown


def test_status_of_an_agent_is_escaped(villain):
    process = villain("REPLY.append(EVIL + b'\"=1\\n' + EVIL + b'\"text=' + EVIL + b'\\n' +"
                      "b'\",\"injected\":\"=2\\n')")
    done = run("-t", process.pid, "agent", "status")
    assert done.returncode == OK, done
    assert_harmless(done.stdout)
    assert done.stdout.decode().count("\\x1b]0;owned") == 3, done
    done = run("-t", process.pid, "agent", "status", "--json")
    assert done.returncode == OK, done
    assert_harmless(done.stdout)
    told = json.loads(done.stdout)
    assert told["version"] == 1 and "injected" not in told, told
    assert told['","injected":"'] == 2, told


@pytest.fixture
def home(tmp_path):
    """A folder of the other user, as sudo keeps HOME; and a file of root's beside it."""
    place = tmp_path / "home"
    place.mkdir()
    os.chown(place, VILLAIN, VILLAIN)
    secret = tmp_path / "secret"
    secret.write_text("secret\n" * 5000)
    secret.chmod(0o600)
    return place, secret


def plant(home, variable):
    """The history's place, as the other user prepares it: a link to root's file."""
    folder = home / "probing" if variable == "XDG_STATE_HOME" else home / ".local/state/probing"
    folder.mkdir(parents=True)
    for name in "history", "history.new", "repl_history":
        os.symlink(os.path.relpath(home.parent / "secret", folder), folder / name)
    for path in [folder, *folder.parents]:
        if home in [path, *path.parents]:
            os.chown(path, VILLAIN, VILLAIN)
    return folder


@pytest.mark.parametrize("variable", ["HOME", "XDG_STATE_HOME"])
def test_history_follows_no_link(home, variable):
    home, secret = home
    folder = plant(home, variable)
    assert (folder / "history").read_text() == secret.read_text()
    before = secret.stat(), secret.read_bytes()
    with terminal.Terminal("query", **{"XDG_STATE_HOME": "", variable: str(home)}) as typing:
        typing.until("probing> ")
        typing.send("SELECT 40 + 2;\r")
        assert "\n42\n" in typing.until("probing> ").replace(" ", "")
        typing.send("\x1b[A\r")  # the history works while the prompt lasts
        assert "\n42\n" in typing.until("probing> ").replace(" ", "")
        typing.send("\x04")
        assert typing.end()[1] == OK
    assert secret.read_bytes() == before[1] and secret.stat().st_mtime_ns == before[0].st_mtime_ns
    assert sorted(os.listdir(folder)) == ["history", "history.new", "repl_history"]


def test_history_waits_for_no_pipe(home):
    home, _ = home
    folder = plant(home, "HOME")
    (folder / "history").unlink()
    os.mkfifo(folder / "history")
    with terminal.Terminal("query", HOME=str(home), XDG_STATE_HOME="") as typing:
        typing.until("probing> ")
        typing.send("\x04")
        assert typing.end()[1] == OK


def test_nothing_is_made_in_the_home_of_another(home):
    home, _ = home
    with terminal.Terminal("query", HOME=str(home), XDG_STATE_HOME="") as typing:
        typing.until("probing> ")
        typing.send("\x04")
        assert typing.end()[1] == OK
    assert os.listdir(home) == []


def test_snapshot_without_a_name_follows_no_link(home, villain):
    """All writers of its folder can predict its name."""
    home, secret = home
    process = villain()
    file = home / ("probing-%d.snapshot" % process.pid)
    os.symlink("../secret", file)
    before = secret.read_bytes()
    done = run("-t", process.pid, "snapshot", cwd=home)
    assert done.returncode == OK, done
    assert secret.read_bytes() == before
    assert not file.is_symlink() and file.stat().st_mode & 0o777 == 0o600
    assert b"Python 3" in run("-t", file, "debug", "--dump").stdout
    # A name that root gives is root's choice.
    chosen, link = home / "chosen", home / "link"
    chosen.touch()
    os.symlink("chosen", link)
    assert run("-t", process.pid, "snapshot", "-o", link, cwd=home).returncode == OK
    assert link.is_symlink() and chosen.stat().st_size > 1000
