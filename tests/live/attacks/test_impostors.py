# SPDX-License-Identifier: GPL-3.0-or-later
"""Another user listens where the agent of a process would: the command does not talk to that."""
import os
import signal
import socket

import pytest

import support
from environment import FAILED, OK
from sockets_support import ATTACKER, SYSTEM_PYTHON, Impostor

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON,
                                reason="needs root, and the system's Python for the other user")
SCRIPT = (support.HERE / "programs" / "obeys.py").read_text("utf-8")


class Numbered(support.Program):
    """A Python program that is process @number."""

    def __init__(self, build, number, attacker=False):
        os.chmod(build.folder, 0o755)
        super().__init__([build.program("with_pid"), number, SYSTEM_PYTHON, "-c", SCRIPT], cwd="/",
                         env={"PATH": os.environ["PATH"]})
        assert self.line() == "ready"
        self.pid = number
        if attacker:
            self.obey("os.setgroups([]); os.setgid(%d); os.setuid(%d)" % (ATTACKER, ATTACKER))

    def __exit__(self, *about):
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)  # its parent ends with it
            self.wait()
        super().__exit__(*about)

    def obey(self, line):
        self.send(line.encode() + b"\n")
        assert self.line() == "done"


NAMES = ["@probing-0-PID", "@probing-7-PID", "/tmp/probing-other-%d/agent-PID.sock" % os.getpid()]
# Each of pytest's workers must find the same tests, whatever its pid is.
IDS = ["root", "other-user", "other-folder"]


@pytest.mark.parametrize("name", NAMES, ids=IDS)
def test_the_listener_has_ended_and_the_target_has_its_number(build, probing, name):
    with Impostor("speak", name) as impostor, Numbered(build, impostor.listener) as victim:
        done = probing(victim.pid, "eval", "'the true value'")
        assert done.code == OK and done.out == "'the true value'\n", done
        assert probing(victim.pid, "eject").code == OK
        assert probing(victim.pid, "agent", "status").code == FAILED
        assert impostor.finish() == ""


@pytest.mark.parametrize("name", NAMES, ids=IDS)
def test_the_target_had_an_agent_which_was_stopped(build, probing, name):
    """Its library is still there: another user's socket is found, and not talked to."""
    with Impostor("speak", name) as impostor, Numbered(build, impostor.listener) as victim:
        assert probing(victim.pid, "eval", "1").code == OK
        assert probing(victim.pid, "agent", "stop").code == OK
        done = probing(victim.pid, "agent", "status")
        assert done.code == FAILED and not done.out, done
        done = probing(victim.pid, "eval", "'the true value'")
        assert done.code == OK and done.out == "'the true value'\n", done
        assert "got" not in impostor.finish()


def has_peer_pidfd():
    one, other = socket.socketpair()
    with one, other:
        try:
            os.close(one.getsockopt(socket.SOL_SOCKET, 77))
        except OSError:
            return False
    return True


@pytest.mark.skipif(not has_peer_pidfd(), reason="this kernel does not tell (Linux 6.5 does)")
def test_an_ended_process_of_the_same_user(build, probing):
    """It has the target's pid and user, but is another process."""
    folder = "/tmp/probing-%d" % ATTACKER
    with Impostor("speak", folder + "/agent-PID.sock") as impostor, Numbered(
            build, impostor.listener, attacker=True) as victim:
        assert os.stat("%s/agent-%d.sock" % (folder, victim.pid)).st_uid == ATTACKER
        done = probing(victim.pid, "agent", "status")
        assert done.code == FAILED, done
        done = probing(victim.pid, "eval", "'the true value'")
        assert done.code == OK and done.out == "'the true value'\n", done
        assert "got" not in impostor.finish()
