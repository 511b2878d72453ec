# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets behind ssh: ssh's arguments, and that they arrive unchanged at the other end."""
import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

import support
from conftest import PROGRAMS
from environment import FAILED, OK, USAGE
from sql_prompt import ENDLESS, enter, prompt, until_it_computes
from terminal import Terminal, environment


class Other:
    """A machine that is reached by an ssh of ours, first in PATH."""

    def __init__(self, folder):
        self.log, self.bin = folder / "log", folder / "bin"
        self.bin.mkdir()
        (self.bin / "ssh").write_text("#!/bin/sh\nexec %s %s \"$@\"\n" % (
            shlex.quote(sys.executable), shlex.quote(str(PROGRAMS / "fake_ssh.py"))))
        (self.bin / "ssh").chmod(0o755)
        (self.bin / "probing").symlink_to(support.BINARY)
        self.variables = {"PATH": "%s:%s" % (self.bin, os.environ["PATH"]),
                          "FAKE_SSH_LOG": str(self.log),
                          "PROBING_AGENT": os.path.join(os.path.dirname(support.BINARY),
                                                        "libprobing-agent.so")}

    def run(self, *words, stdin=None, cwd=None, **variables):
        given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run([support.BINARY, *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False, cwd=cwd,
                              env=environment(**dict(self.variables, **variables)), **given)

    def told(self):
        return json.loads(self.log.read_text().split("\n")[-2])


@pytest.fixture
def other(tmp_path):
    return Other(tmp_path)


@pytest.fixture
def process(target):
    return target("evaluated.py", "idle")


def test_words(process, other):
    done = other.run("-t", "ssh://me@node7:2222/%d" % process.pid, "-v", "eval", "numbers")
    assert done.stdout == b"[1, 2, 3]\n", done
    assert other.told() == ["-T", "-oLogLevel=ERROR", "-p", "2222", "--", "me@node7",
                            "exec 'probing' '-t' '%d' 'eval' '--verbose' '--' 'numbers'" % process.pid]
    assert other.run("ssh://[::1]/%d" % process.pid, "eval", "1").stdout == b"1\n"
    assert other.told()[:4] == ["-T", "-oLogLevel=ERROR", "--", "::1"]


@pytest.mark.parametrize("text", [
    "it's", "a b", "$HOME", "`id`", "$(id)", "a\nb", "\\", "\"", "'", "''", "!x", "*", "é漢", ";&|<>#~",
    "-x", "--", ""])
def test_quoting(process, other, text):
    done = other.run("-t", "ssh://node7/%d" % process.pid, "eval", "--", ascii(text)
                     if "\n" in text else repr(text))
    assert done.stdout.decode() == repr(text) + "\n" or \
        done.stdout.decode() == ascii(text) + "\n", done
    named = other.run("-t", "ssh://node7/%d" % process.pid, "eval", "--name", "x" + text, "1 / 0")
    assert ("x" + text).encode() in named.stderr, named


def test_exit_codes(process, other):
    assert other.run("-t", "ssh://node7/%d" % process.pid, "eval", "1 / 0").returncode == FAILED
    here = other.run("-t", "2147483647", "backtrace")
    there = other.run("-t", "ssh://node7/2147483647", "backtrace")
    assert there.returncode == here.returncode and there.stderr == here.stderr
    for reason, says in [("exit 255", b"ssh did not reach node7"),
                         ("exit 127", b"there is no probing at node7")]:
        (other.bin / "ssh").write_text("#!/bin/sh\n%s\n" % reason)
        done = other.run("-t", "ssh://node7/1", "backtrace")
        assert done.returncode == FAILED and says in done.stderr, done


@pytest.mark.parametrize("target", ["ssh://", "ssh://node7", "ssh://node7/", "ssh:///42",
                                    "ssh://-oProxyCommand=id/42", "ssh://node7:x/42"])
def test_what_is_no_target(other, target):
    done = other.run("-t", target, "backtrace")
    assert done.returncode == USAGE and b"names no target behind ssh" in done.stderr, done
    assert not other.log.exists()


def test_files_are_here(process, other, tmp_path):
    place = "ssh://node7/%d" % process.pid
    (tmp_path / "it's.py").write_text("numbers\n")
    assert other.run("-t", place, "eval", "-f", "it's.py", cwd=tmp_path).stdout == b"[1, 2, 3]\n"
    assert other.run("-t", place, "query", stdin=b"SELECT 1 AS x").stdout.startswith(b"x\n")
    done = other.run("-t", place, "snapshot", "-o", "a b.snapshot", cwd=tmp_path)
    assert done.stdout.startswith(b"a b.snapshot: ") and done.returncode == OK, done
    assert b"evaluated.py" in other.run(tmp_path / "a b.snapshot", "backtrace").stdout
    assert other.run("-t", place, "repl", stdin=b"numbers\n").stdout == b"[1, 2, 3]\n"


def test_files_that_are_there(process, other):
    """A library, or a debugpy, is of the machine where the process runs."""
    for words in ("inject", "-L", "/no/such.so"), ("debug", "--dap", "--debugpy", "/no/such"):
        here = other.run("-t", process.pid, *words)
        there = other.run("-t", "ssh://node7/%d" % process.pid, *words)
        assert there.returncode == here.returncode != OK, there
        assert there.stderr.endswith(here.stderr) and b"/no/such" in here.stderr, (there, here)


def test_list_and_names(process, other):
    rows = json.loads(other.run("-t", "ssh://node7/-", "list", "--json").stdout.decode())
    assert process.pid in [row["pid"] for row in rows]
    assert "'-t'" not in other.told()[-1]


def test_terminal(process, other, tmp_path):
    """With a terminal, ssh makes one at the other end, which has the prompt."""
    with Terminal("-t", "ssh://node7/%d" % process.pid, "repl", TERM="dumb", HOME=str(tmp_path),
                  INPUTRC="/dev/null", XDG_STATE_HOME="", **other.variables) as terminal:
        terminal.until("%d >>> " % process.pid)
        assert other.told()[0] == "-t"
        terminal.send("numbers\r")
        terminal.until("[1, 2, 3]")
        terminal.until("%d >>> " % process.pid)
        terminal.send("\x04")
        assert terminal.end()[1] == OK


def test_prompt_of_sql(process, other, tmp_path):
    """The same for SQL, with a Ctrl-C in a query."""
    with prompt(tmp_path, "-t", "ssh://node7/%d" % process.pid, TERM="dumb",
                **other.variables) as terminal:
        for _ in range(2):
            assert "\n%d\n" % process.pid in enter(terminal, "SELECT tid FROM python.threads;")
        there = terminal.process.pid
        while support.children(there):
            there, = support.children(there)
        terminal.send(ENDLESS + ";\r")
        until_it_computes(there)
        terminal.send("\x03")
        assert "the query was cancelled" in terminal.until("probing> ")
        enter(terminal, "SET probing.query.timeout = 5;")
        assert "\nprobing.query.timeout  5 " in enter(terminal, "SHOW probing.query.timeout;")
        terminal.send("\x04")
        assert terminal.end()[1] == OK


def test_ssh_is_missing(tmp_path):
    done = subprocess.run([support.BINARY, "-t", "ssh://node7/1", "backtrace"], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL, env=environment(PATH=str(tmp_path)))
    assert done.returncode == FAILED and b"cannot run ssh" in done.stderr, done


# The server of ssh is mostly in no user's PATH.
SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")


@pytest.mark.skipif(not SSHD, reason="there is no sshd here")
def test_a_real_one(process, tmp_path):
    """A server of ssh of our own, on this machine."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name],
                       check=True, timeout=60, stdin=subprocess.DEVNULL)
    (tmp_path / "authorized").write_bytes((tmp_path / "user.pub").read_bytes())
    config = tmp_path / "config"
    config.write_text("HostKey %s/host\nAuthorizedKeysFile %s/authorized\nStrictModes no\n"
                      "UsePAM no\nPidFile none\n" % (tmp_path, tmp_path))
    client = tmp_path / "ssh"
    client.write_text(
        "#!/bin/sh\nexec %s -F /dev/null -i %s/user -o StrictHostKeyChecking=no "
        "-o UserKnownHostsFile=/dev/null -o BatchMode=yes -o \"ProxyCommand=%s -i -f %s\" \"$@\"\n"
        % (shutil.which("ssh"), tmp_path, SSHD, config))
    client.chmod(0o755)
    os.makedirs("/run/sshd", exist_ok=True)
    done = subprocess.run(
        [support.BINARY, "-t", "ssh://localhost/%d" % process.pid, "eval", "'it''s', \"$HOME\""],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, stdin=subprocess.DEVNULL,
        check=False, env=environment(PATH="%s:%s" % (tmp_path, os.environ["PATH"]),
                                     PROBING_REMOTE_PROGRAM=support.BINARY))
    assert done.stdout == b"('its', '$HOME')\n", done
