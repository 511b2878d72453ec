# SPDX-License-Identifier: GPL-3.0-or-later
"""What takes long says on a terminal what it does and how much is left; a pipe gets results only."""
import os
import re
import stat

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
