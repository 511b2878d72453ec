# SPDX-License-Identifier: GPL-3.0-or-later
"""A process of another user answers for its agent itself, and wants to harm root's command."""
import json
import os
import re
import resource
import signal
import subprocess
import time

import pytest

import commands
import support
from environment import FAILED, OK, TIMEOUT
from sockets_support import SYSTEM_PYTHON, as_attacker

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON,
                                reason="needs root, and the system's Python for the other user")
SCRIPT = (support.HERE / "programs" / "hostile_agent.py").read_text("utf-8")
MEMORY = 1 << 30  # bytes that a command may have; with all of an answer it would need far more


class HostileAgent(support.Program):
    def __init__(self, kind):
        super().__init__([SYSTEM_PYTHON, "-c", SCRIPT, kind], cwd="/",
                         env={"PATH": os.environ["PATH"]}, preexec_fn=as_attacker)
        assert self.line() == "ready"

    def __exit__(self, *about):
        if self.alive():
            self.send(b"x")
            self.wait()
        super().__exit__(*about)


COMMANDS = [("eval", "1"), ("agent", "status"), ("eject",), ("inject",)]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("kind", ["full", "silent", "huge"])
def test_no_connection(probing, kind, words):
    """No command waits for ever; inject loads the agent where it is not mapped yet."""
    with HostileAgent(kind) as target:
        done = probing(target.pid, *words)
        assert done.code == OK and words == ("inject",) or done.err.strip(), done
        assert done.code in (OK, FAILED, TIMEOUT), done


# Commands that ask an agent: the file that asks, the command, and the seconds that its answer may
# take; those of more than ten run in the long form. A row without a command says why it has none.
ENDLESS = {
    "eval": ("cli/commands/eval/eval.c", ("eval", "--timeout", "1", "1"), 1),
    "trace": ("cli/commands/trace.c", ("trace", "a.py:1", "n", "--for", "1s"), 1),
    "trace-keep": ("cli/commands/trace.c", ("trace", "a.py:1", "n", "--keep"), 1),
    "trace-list": ("cli/commands/trace.c", ("trace", "list"), 1),
    "trace-clear": ("cli/commands/trace.c", ("trace", "clear"), 1),
    "trace-calls": ("cli/commands/trace.c", ("trace", "--no-inject", "--for", "1s", "--calls", "f"), 1),
    "repl": ("cli/commands/repl.c", ("repl", "--timeout", "1"), 1),
    "dap": ("cli/commands/debug/dap.c", ("debug", "--dap=127.0.0.1:0"), 40),
    "prompt": ("control/drive/drive.c", ("debug", "--within", "1s"), 6),
    "break": ("control/drive/drive.c", ("break", "a.py:1", "--within", "1s"), 6),
    "status": ("cli/commands/agent/agent.c", ("agent", "status"), 2),
    "eject": ("cli/commands/inject/eject.c", ("eject",), 10),
    "resume": ("cli/commands/pause/resume.c", ("resume",), 2),
    "crash": ("cli/commands/inject/inject.c", None, "of an agent that was loaded by the command"),
    "crash-settings": ("control/crash.c", None, "of the same"),
    "pause": ("control/pause.c", ("debug", "--pause", "--max", "1s", "--within", "1s"), 6),
    "step": ("control/step.c", ("step",), 5),
    "step-time": ("control/step.c", ("step", "--time", "1s"), 1),
    "config": ("control/config.c", ("config",), 5),
    "set": ("control/config.c", ("query", "SET probing.sample_rate = 0.5"), 5),
    "query": ("control/expression.c", ("query", "--timeout", "1", "SELECT * FROM python.`1`"), 5),
    "sites": ("control/sites.c", ("memory", "--sites", "1s"), 1),
    "sites-cc": ("control/sites.c", ("memory", "--sites", "1s", "--cc"), 1),
    "exact": ("cli/commands/perf/torch/asking.c", ("perf", "--torch", "--exact", "--duration", "1s"), 1),
    "ops": ("cli/commands/perf/torch/ops/ops.c", ("perf", "--torch", "--ops", "--duration", "1s"), 61),
    "ops-rows": ("cli/commands/perf/torch/ops/rows.c", None, "to an agent that has answered before"),
    "flight": ("control/flight.c", None, "the cluster's, with --timeout as eval"),
    "completion": ("command/prompt/prompt_python.c", None, "of a repl whose agent answers"),
    "library": ("lib/library_eval.c", None, "a function, as eval"),
}
# Commands that ask no agent, or only by other commands, which have a row.
OTHERS = {
    "backtrace", "print", "dump", "list", "overview", "why", "tables", "ring", "crashes", "record", "flamegraph", "symbolize", "top", "node", "snapshot",
    "doctor", "script", "diff", "gdb", "run", "check", "server", "watch", "lldb", "completion", "export", "skill", "help",  # read from outside
    "launch",  # of a process that it starts
    "cluster",  # control/flight.c
    "serve", "mcp",  # start these commands, each with a deadline
    "dap",  # control/drive/, as the row "prompt"
}
# Seconds: for the greeting, until code has begun, its slack, and a look at whether the agent is alive.
ENOUGH = 10
ASKS = r"\bprb_(agent_request|agent_ask|agent_stop|eval_run|eval_show)\("


def test_no_command_is_forgotten():
    """Every command that talks to an agent has a row above."""
    found = {str(path.relative_to(support.ROOT)) for path in support.ROOT.glob("*/**/*.c")
             if path.relative_to(support.ROOT).parts[0] not in ("build", "tests")
             and re.search(ASKS, path.read_text("utf-8"))}
    assert found == {row[0] for row in ENDLESS.values()} | {"control/client.c",
                                                            "control/eval.c"}


def test_every_command_has_a_row():
    asking = {row[1][0] for row in ENDLESS.values() if row[1]} | {"inject"}
    asking = {"performance" if name == "perf" else name for name in asking}
    assert asking | OTHERS == set(commands.COMMANDS) and not asking & OTHERS


@pytest.mark.parametrize("kind", ["mute", "trickle"])
@pytest.mark.parametrize("name", [name for name, row in ENDLESS.items()
                                  if row[1] and (row[2] <= 10 or support.LONG)])
def test_no_answer(probing, kind, name, tmp_path):
    """A deadline is also one of an agent that says nothing, or never a whole frame."""
    _, words, seconds = ENDLESS[name]
    typed = tmp_path / "typed"
    typed.write_text("1\n", "ascii")
    with HostileAgent(kind) as target, typed.open() as stdin:
        began = time.monotonic()
        done = probing(target.pid, *words, stdin=stdin)
        took = time.monotonic() - began
        assert done.code == TIMEOUT and done.err.strip(), done
        assert took < seconds + ENOUGH, (took, done)


@pytest.mark.parametrize("kind", ["drip", "freezes"])
@pytest.mark.parametrize("name", [name for name, row in ENDLESS.items()
                                  if row[1] and (row[2] <= 10 or support.LONG)])
def test_other_frames_all_the_time(probing, kind, name, tmp_path):
    """A deadline applies to the whole exchange, not to each frame: an answer comes within it and some
    seconds more, whatever the agent sends."""
    _, words, seconds = ENDLESS[name]
    typed = tmp_path / "typed"
    typed.write_text("1\n", "ascii")
    with HostileAgent(kind) as target, typed.open() as stdin:
        began = time.monotonic()
        done = probing(target.pid, *words, stdin=stdin)
        took = time.monotonic() - began
        assert done.code == TIMEOUT and re.search(
            "goes on sending, and never answers|did not say in time|needed over 1 s to import", done.err), done
        # One for the slack of code, two for late answers, two for all else.
        assert took < seconds + 5, (took, done)


@pytest.mark.parametrize("words, limit", [
    (("eval", "--timeout", "1", "1"), 1), (("agent", "status"), 5), (("eject",), 10), (("resume",), 5),
    (("debug", "--pause", "--max", "1s", "--within", "1s"), 2),
    (("debug", "--pause", "--max", "1s"), 6)], ids=lambda word: " ".join(word) if isinstance(word, tuple) else "")
def test_one_byte_at_a_time(probing, words, limit):
    """Each byte is in time, but the whole is not. The command reports that itself, and is not killed."""
    with HostileAgent("trickle") as target:
        began = time.monotonic()
        done = probing(target.pid, *words)
        assert done.code == TIMEOUT and done.err.strip(), done
        # The greeting may take two seconds, checking the agent's activity one.
        assert time.monotonic() - began < limit + 6, done


def test_a_request_that_is_not_read(probing, tmp_path):
    code = tmp_path / "code.py"
    code.write_text("# much\n" * 500000)
    with HostileAgent("deaf") as target:
        done = probing(target.pid, "eval", "-f", code)
        assert done.code == TIMEOUT and "does not answer" in done.err, done


def test_an_endless_answer_is_not_collected(probing):
    with HostileAgent("flood") as target:
        done = probing(target.pid, "eval", "--json", "1", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (MEMORY, MEMORY)))
        assert done.code == FAILED and "over 64 MiB" in done.err and not done.out, done


def test_ctrl_c_ends_an_endless_answer():
    """The first Ctrl-C is for the code, which an honest agent would interrupt; the next one ends the
    command."""
    with HostileAgent("flood") as target:
        command = subprocess.Popen([support.BINARY, str(target.pid), "eval", "1"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        try:
            assert command.stdout.read(1 << 20)
            for _ in range(2):
                command.send_signal(signal.SIGINT)
                command.stdout.read(1 << 20)
            err = command.communicate(timeout=60)[1].decode()
            assert command.returncode == -signal.SIGINT or "interrupted" in err, err
        finally:
            command.kill()
            command.communicate()


@pytest.mark.parametrize("options", [(), ("--cc",)], ids=["python", "cc"])
@pytest.mark.parametrize("kind", ["wild", "random", "endless"])
def test_samples_of_allocations(probing, kind, options):
    """Whatever the buffer contains, the command ends, and reports unusable data."""
    with HostileAgent(kind) as target:
        done = probing(target.pid, "memory", "--sites", "1s", "--json", *options,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        assert done.code in (OK, FAILED), done
        if done.code == OK:
            assert kind != "wild" and (json.loads(done.out)["lost_bytes"] or done.err), done
        else:
            assert done.err.strip() and not done.out, done
