# SPDX-License-Identifier: GPL-3.0-or-later
"""Another user tries to talk to the agent of a process, or to keep it from starting."""
import json
import os
import re
import socket
import subprocess

import pytest

import agent
import support
from environment import FAILED, OK, Started, needs, other_tmp
from sockets_support import ATTACKER, SYSTEM_PYTHON, as_attacker

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON,
                                reason="needs root, and the system's Python for the other user")
VICTIM = 2002
SCRIPT = (support.HERE / "programs" / "obeys.py").read_text("utf-8")
# Behind the text of agent.py, which the attacker may not read where it is.
STEAL = """
import sys
with Client("\\0" + sys.argv[1]) as client:
    print(client.evaluate("__import__('os').getuid()"))
"""


HAS_MOUNTS = needs("no mount namespaces here", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp")


def abstract_names(pid):
    """Sockets that could be the agent's of that process."""
    with open("/proc/%d/net/unix" % pid, encoding="ascii", errors="replace") as file:
        return re.findall(r" @(probing-.*-%d)$" % pid, file.read(), re.M)


def steals(name):
    """What an attacker gets by connecting to that name."""
    script = (support.HERE / "agent.py").read_text("utf-8") + STEAL
    done = subprocess.run([SYSTEM_PYTHON, "-c", script, name], preexec_fn=as_attacker, cwd="/",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    return done.stdout.decode()


@needs("no user namespaces here", "unshare", "-m", "unshare", "-U", "true")
def test_a_user_namespace_that_knows_nobody(probing):
    """Without a file for the socket, all users would look like the process's own."""
    command = ["unshare", "-m", "sh", "-c", other_tmp("mount -o remount,ro /tmp"), "sh",
               "setpriv", "--reuid", VICTIM, "--regid", VICTIM, "--clear-groups", "unshare", "-U",
               SYSTEM_PYTHON, "-c", SCRIPT]
    with Started(command, rest=1, cwd="/", env={"PATH": os.environ["PATH"]}) as process:
        done = probing(process.python, "inject")
        stolen = [steals(name) for name in abstract_names(process.python)]
        assert not any(stolen), stolen
        assert done.code == FAILED and "look like its own" in done.err, done
        assert agent.ours(process.python) == []


@pytest.fixture
def squatted():
    """A folder in place of /tmp in which the attacker has made the victim's folder."""
    script = other_tmp("mkdir -m 700 /tmp/probing-%d" % VICTIM,
                       "chown %d /tmp/probing-%d" % (ATTACKER, VICTIM))
    return ["unshare", "-m", "sh", "-c", script, "sh", "setpriv", "--reuid", VICTIM, "--regid",
            VICTIM, "--clear-groups", SYSTEM_PYTHON, "-c", SCRIPT]


@needs("no user namespaces here", "unshare", "-m", "unshare", "-U", "true")
@pytest.mark.parametrize("mode, owner", [(0o700, ATTACKER), (0o755, ATTACKER), (0o1777, ATTACKER), (0o777, 0)])
def test_a_user_namespace_where_the_folder_is_taken(probing, mode, owner):
    """Abstract names are missing there, and the folder seems to be the process's own: another one is used."""
    name = "/tmp/probing-65534"
    command = ["unshare", "-m", "sh", "-c", other_tmp("mkdir %s" % name, "chmod %o %s" % (mode, name),
                                                      "chown %d %s" % (owner, name)), "sh",
               "setpriv", "--reuid", VICTIM, "--regid", VICTIM, "--clear-groups", "unshare", "-U",
               SYSTEM_PYTHON, "-c", SCRIPT]
    with Started(command, rest=1, cwd="/", env={"PATH": os.environ["PATH"]}) as process:
        done = probing(process.python, "eval", "'the true value'")
        assert done.code == OK and done.out == "'the true value'\n", done
        status = json.loads(probing(process.python, "agent", "status", "--json").out)
        assert re.fullmatch(name + r"\.[0-9a-f]+/agent-\d+\.sock", status["socket"]), status
        assert status["socket_note"].startswith(name + " belongs to another user"), status
        assert os.listdir("/proc/%d/root%s" % (process.python, name)) == []
        assert probing(process.python, "eject").code == OK


@HAS_MOUNTS
def test_all_names_are_taken(probing, squatted):
    """The folder and the abstract name: the agent starts all the same, and is found."""
    with Started(squatted, rest=1, cwd="/", env={"PATH": os.environ["PATH"]}) as process:
        name = "probing-%d-%d" % (VICTIM, process.python)
        with socket.socket(socket.AF_UNIX) as taken:
            taken.bind("\0" + name)
            taken.listen(1)
            done = probing(process.python, "eval", "'the true value'")
            assert done.code == OK and done.out == "'the true value'\n", done
            other = json.loads(probing(process.python, "agent", "status", "--json").out)["socket"]
            assert other.startswith("@probing-") and other != "@" + name
            assert not steals(other[1:])
            assert probing(process.python, "eject").code == OK


@HAS_MOUNTS
def test_a_service_that_cannot_be_noted(probing, newest):
    """Another user has made the folder that lists services."""
    script = other_tmp("mkdir -m 700 /tmp/probing-0", "chown %d /tmp/probing-0" % ATTACKER)
    inside = ["unshare", "-m", "sh", "-c", script, "sh"]
    with Started([*inside, newest.exe, "-c", SCRIPT], rest=1,
                 env=dict(newest.env, XDG_RUNTIME_DIR="")) as process:
        enter = ["nsenter", "-m", "-r", "-t", str(process.python)]
        done = subprocess.run(
            [*enter, support.BINARY, str(process.python), "inject", "--listen", "127.0.0.1:0"],
            env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == OK, done
        assert probing(process.python, "eject").code == OK
