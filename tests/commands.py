# SPDX-License-Identifier: GPL-3.0-or-later
"""All commands, in the order of the help: what each must have is tested by these names."""

COMMANDS = [
    "debug", "backtrace", "print", "dump", "list", "query", "tables", "ring", "crashes", "performance",
    "flamegraph", "top", "snapshot", "inject", "launch", "eval", "repl", "trace", "resume", "step", "agent",
    "eject", "doctor", "script", "gdb", "lldb", "completion", "help",
]
