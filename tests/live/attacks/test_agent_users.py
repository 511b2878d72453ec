# SPDX-License-Identifier: GPL-3.0-or-later
"""Another user tries to talk to the agent of a process, or to keep it from starting."""
import os
import re
import subprocess

import pytest

import agent
import support
from environment import FAILED, Started, needs
from sockets_support import SYSTEM_PYTHON, as_attacker

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


def abstract_names(pid):
    """Sockets that could be the agent's of that process."""
    with open("/proc/%d/net/unix" % pid, encoding="ascii", errors="replace") as file:
        return re.findall(r" @(probing-.*-%d)$" % pid, file.read(), re.M)


def steals(name):
    """What the attacker gets who connects to that name."""
    script = (support.HERE / "agent.py").read_text("utf-8") + STEAL
    done = subprocess.run([SYSTEM_PYTHON, "-c", script, name], preexec_fn=as_attacker, cwd="/",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    return done.stdout.decode()


@needs("no user namespaces here", "unshare", "-m", "unshare", "-U", "true")
def test_a_user_namespace_that_knows_nobody(probing):
    """Without a file for the socket, all users would look like the process's own."""
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro none /tmp && exec \"$@\"", "sh",
               "setpriv", "--reuid", VICTIM, "--regid", VICTIM, "--clear-groups", "unshare", "-U",
               SYSTEM_PYTHON, "-c", SCRIPT]
    with Started(command, rest=1, cwd="/", env={"PATH": os.environ["PATH"]}) as process:
        done = probing(process.python, "inject")
        stolen = [steals(name) for name in abstract_names(process.python)]
        assert not any(stolen), stolen
        assert done.code == FAILED and "look like its own" in done.err, done
        assert agent.ours(process.python) == []
