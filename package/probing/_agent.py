# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts and stops the agent in this process: the same agent that `probing inject` loads."""

import os

import probing_startup


def init(listen=None):
    """Start the agent in this process; a second call does nothing.

    `listen` is refused in this version: `probing PID inject --listen ADDRESS` serves a process.
    """
    if listen is not None:
        raise probing_startup.StartError(
            "init(listen=…) is not in this version: 'probing %d inject --listen %s' does it"
            % (os.getpid(), listen))
    probing_startup.start_agent()


def stop():
    """Stop the agent in this process and wait until its threads have ended."""
    probing_startup.call_agent("probing_agent_stop", None)
