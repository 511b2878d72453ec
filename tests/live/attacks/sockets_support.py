# SPDX-License-Identifier: GPL-3.0-or-later
"""Code shared by the tests that attack injection and the agent's socket."""
import os
from pathlib import Path

import support

ATTACKER = 2001  # a user that has nothing to do with the user of the command
# An interpreter that every user may run.
SYSTEM_PYTHON = next((i.exe for i in support.INTERPRETERS if i.exe.startswith("/usr/bin/")), None)


def as_attacker():
    """For a child before it runs its program: it becomes the attacker."""
    os.setgroups([])
    os.setgid(ATTACKER)
    os.setuid(ATTACKER)


class Impostor(support.Program):
    """programs/impostor.py, run by the attacker: .listener is the ended process that listens."""

    def __init__(self, kind, name):
        script = (support.HERE / "programs" / "impostor.py").read_text("utf-8")
        super().__init__([SYSTEM_PYTHON, "-c", script, kind, name], cwd="/",
                         env={"PATH": os.environ["PATH"]}, preexec_fn=as_attacker)
        word, number = self.line().split()
        assert word == "ready"
        self.listener = int(number)
        self.path = None if name.startswith("@") else Path(name.replace("PID", number))

    def finish(self):
        """Everything that it printed since it was ready."""
        self.send(b"x")
        out, _ = self._process.communicate(timeout=60)
        return (self._printed + out).decode()

    def __exit__(self, *about):
        super().__exit__(*about)
        if self.path and self.path.exists():
            self.path.unlink()
        if self.path and not any(self.path.parent.iterdir()):
            self.path.parent.rmdir()
