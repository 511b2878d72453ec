# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests share that play attacks on injection and on the agent's socket."""
import os

ATTACKER = 2001  # a user that has nothing to do with the user of the command


def as_attacker():
    """For a child before it runs its program: it becomes the attacker."""
    os.setgroups([])
    os.setgid(ATTACKER)
    os.setuid(ATTACKER)
