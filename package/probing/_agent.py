# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts and stops the agent in this process: the same agent that `probing inject` loads."""

import probing_startup


def init(listen=None):
    """Start the agent in this process; a second call does nothing.

    `listen` is an address, such as "127.0.0.1:9922", at which the program `probing` then serves the
    process in the background. Without $PROBING_AUTH_TOKEN, the token is printed on stderr.
    """
    probing_startup.start_agent()
    if listen is not None:
        probing_startup.serve(listen)


def stop():
    """Stop the agent in this process and wait until its threads have ended."""
    probing_startup.call_agent("probing_agent_stop", None)
