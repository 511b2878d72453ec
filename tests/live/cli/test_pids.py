# SPDX-License-Identifier: GPL-3.0-or-later
"""Several pids as `$(pgrep -f train.py)` gives them mean the parent, and a target alone is dumped."""
import os
import shlex
import subprocess

import pytest

import support
from environment import OK, USAGE

SAYS = "probing: several pids are given; %s, the parent, is the target\n"


@pytest.fixture
def pool(target):
    return target("pool.py").ready


def shell(line, pids, **environment):
    """With the pids in $E, a line each, as from pgrep."""
    return subprocess.run(["sh", "-c", line.replace("probing", shlex.quote(str(support.BINARY)))], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
                          env=dict(os.environ, E="\n".join(pids), **environment), universal_newlines=True)


@pytest.mark.parametrize("line", [
    "probing $E dump", "probing -t $E dump", "probing -p $E backtrace", "probing --pid $E eval 'os.getpid()'",
    "probing dump $E", "probing dump -p $E", "probing \"$E\" dump", "probing -t \"$E\" dump", "probing $E",
    "probing $E print os.path.sep", "probing $E query 'SELECT pid FROM process.info'"])
def test_the_parent_is_meant(line, pool):
    for pids in (pool, pool[::-1]):
        done = shell(line.replace("os.getpid()", "__import__(\"os\").getpid()"), pids)
        assert done.returncode == OK and done.stderr == SAYS % pool[0], done
        assert pool[0] in done.stdout or "print" in line, done


def test_strangers_are_refused(pool):
    done = shell("probing $E dump", pool[1:])
    assert done.returncode == USAGE and not done.stdout
    assert "several processes are given (%s, %s), and none is the parent of the others" % tuple(pool[1:]) \
        in done.stderr


def test_other_numbers_are_left_alone(pool):
    """What may be a pid as well is none behind a command that takes words."""
    done = shell("probing eval -p %s 5" % pool[0], pool)
    assert (done.returncode, done.stdout, done.stderr) == (OK, "5\n", "")
    done = shell("probing -p %s eval 5" % pool[0], pool)
    assert (done.returncode, done.stdout, done.stderr) == (OK, "5\n", "")


@pytest.mark.parametrize("words", ["%s", "-p %s", "--target %s", "%s --token-file /dev/null"])
def test_a_target_alone_is_dumped(words, pool):
    done = shell("probing " + words % pool[0], pool)
    whole = shell("probing dump " + words % pool[0], pool)
    assert done.returncode == whole.returncode == OK and done.stderr == whole.stderr == ""
    assert done.stdout.split("\n")[0] == whole.stdout.split("\n")[0] and "pool.py:16" in done.stdout
