# SPDX-License-Identifier: GPL-3.0-or-later
"""What takes long says on a terminal what it does and how much is left; a pipe gets results only."""
import os
import pathlib
import re
import signal
import stat
import subprocess

from environment import OK
from terminal import Terminal

# Erased and printed anew; nothing of it is left when results come.
ERASE = "\r\x1b[K"


def test_growth(target):
    process = target("asleep.py", 1)
    with Terminal(process.pid, "memory", "--growth", "5s") as terminal:
        terminal.until(ERASE + "watching what grows · 2 s, at most 3 s left")
        terminal.until(ERASE + "watching what grows · 3 s, at most 2 s left")
        rest, status = terminal.end()
    assert status == OK and rest.rsplit(ERASE, 1)[1].startswith(str(process.pid)), rest


def slow_ssh(tmp_path):
    """A host that is asked answers when the file `go` is there, all but the first at once."""
    path = tmp_path / "ssh"
    path.write_text("#!/bin/sh\ncase \"$*\" in *node2*) until [ -e %s/go ]; do sleep 0.1; done;; esac\n"
                    "echo 'no probing here' >&2\nexit 1\n" % tmp_path)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}


def test_hosts(tmp_path):
    with Terminal("cluster", "nodes", "--hosts", "node[1-3]", "--timeout", "60s", **slow_ssh(tmp_path)) as terminal:
        said = terminal.until(" left")
        assert re.fullmatch(re.escape(ERASE) + r"answers: 2 of 3 · 2 s, at most [56]\d s", said), said
        (tmp_path / "go").touch()
        rest, _ = terminal.end()
    assert "answers:" not in rest.rsplit(ERASE, 1)[1] and "node2" in rest.rsplit(ERASE, 1)[1], rest


def test_pipe(target, probing):
    process = target("asleep.py", 1)
    done = probing(process.pid, "memory", "--growth", "3s")
    assert done.code == OK and not done.err, done


# Of what it is asked, an apt prints with Status-Fd=1, and waits in the middle for the file `go`.
APT = """#!/bin/sh
case "$*" in *Status-Fd=1*) ;; *) exit 0 ;; esac
echo 'Selecting previously unselected package one.'
echo 'dlstatus:1:50.0000:Retrieving file 1 of 2'
echo 'pmstatus:one:20.0000:Unpacking one (amd64)'
until [ -e %(folder)s/go ]; do sleep 0.1; echo 'pmstatus:one:60.0000:Setting up one: now'; done
"""


def system_without_packages(tmp_path):
    """Programs of a Debian where nothing is installed."""
    for name, text in (("dpkg-query", "#!/bin/sh\nexit 1\n"), ("apt-cache", "#!/bin/sh\n"), ("sudo", '#!/bin/sh\nexec "$@"\n'),
                       ("apt-get", APT % {"folder": tmp_path})):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return {"PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}


INSTALL = pathlib.Path(__file__).parents[3] / "build-aux/install-deps"


def test_apt(tmp_path):
    with Terminal("build", program=INSTALL, **system_without_packages(tmp_path)) as terminal:
        assert "installing with apt" in terminal.until(ERASE)
        said = terminal.until(" left")
        assert re.fullmatch(r"apt: 80 % · \d+ s, about \d+ s", said), said
        (tmp_path / "go").touch()
        rest, status = terminal.end()
    assert status == OK and rest.endswith(ERASE), rest


def test_apt_in_a_pipe(tmp_path):
    done = subprocess.run([str(INSTALL), "build"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env={**os.environ, **system_without_packages(tmp_path)})
    assert done.returncode == OK and not done.stdout and done.stderr.count(b"\n") == 1, done


def test_the_demo_begins_to_speak(tmp_path):
    """Before it calls a compiler, which may take long."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nexec sleep 1000\n")
    compiler.chmod(0o755)
    with subprocess.Popen([str(INSTALL.with_name("demo")), "false", "build"], cwd=str(INSTALL.parents[1]), stdout=subprocess.PIPE,
                          env={**os.environ, "CC": str(compiler)}, start_new_session=True) as demo:
        try:
            assert demo.stdout.readline().startswith(b"Looking for what building needs")
        finally:
            os.killpg(demo.pid, signal.SIGKILL)
