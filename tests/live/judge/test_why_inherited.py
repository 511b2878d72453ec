# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule `inherited` of `probing why`: a child has ended, and another process keeps a pipe of it open."""
import contextlib
import json
import os
import signal
import textwrap

import pytest

import support
from environment import wait_until
from test_why import why

PEER = 29
EACH = support.one_per_version((3, 6))
PROGRAM = """
import subprocess, sys
print(flush=True)
%s
"""
HELD = {
    "both pipes": "subprocess.run(['/bin/sh', '-c', 'sleep 1000 & exit 0'], stdout=-1, stderr=-1)",
    "one pipe": "subprocess.check_output(['/bin/sh', '-c', 'sleep 1000 2>/dev/null & exit 0'])",
    "a thread reads it": """
        import threading
        threading.Thread(target=lambda: subprocess.check_output(['/bin/sh', '-c', 'sleep 1000 & exit 0'])).start()""",
    "the child was reaped": """
        child = subprocess.Popen(['/bin/sh', '-c', 'sleep 1000 & exit 0'], stdout=-1)
        child.wait()
        child.communicate()""",
}
ORDINARY = {
    "the child goes on": "subprocess.check_output(['sleep', '1000'])",
    "the child waits for its own": "subprocess.check_output(['/bin/sh', '-c', 'sleep 1000; true'])",
    "the child has closed it, and goes on": "subprocess.check_output(['/bin/sh', '-c', 'sleep 1000 & exec sleep 1001 >/dev/null'])",
}


@contextlib.contextmanager
def started(interpreter, source):
    text = PROGRAM % textwrap.dedent(source)
    with support.Program([interpreter.exe, "-c", text], env=interpreter.env, start_new_session=True) as program:
        try:
            program.line()
            yield program.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


def findings(pid):
    code, out, _ = why("--json", str(pid))
    [target] = json.loads(out)["targets"]
    return code, [each for each in target["findings"] if each["rule"] == "inherited"]


@pytest.mark.parametrize("interpreter", EACH[-2:], ids=repr)
@pytest.mark.parametrize("kind", sorted(HELD))
def test_the_process_that_has_the_output_is_named(interpreter, kind, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "long=2")
    last = []

    def found():
        last[:] = findings(pid)
        return last[1]
    with started(interpreter, HELD[kind]) as pid:
        wait_until(found)
        code, [finding] = last
        assert (code, finding["confidence"]) == (PEER, "medium"), finding
        [holder] = finding["pids"]
        assert os.readlink("/proc/%d/exe" % holder).rsplit("/", 1)[-1] in ("sleep", "busybox", "coreutils")
        assert ", which has ended: process %d sleep still has it open; in " % holder in finding["sentence"]


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
@pytest.mark.parametrize("kind", sorted(ORDINARY))
def test_a_child_that_lives_is_waited_for(interpreter, kind, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "long=2")
    with started(interpreter, ORDINARY[kind]) as pid:
        wait_until(lambda: (support.dump(pid)["threads"][0]["idle_seconds"] or 0) > 2.5)
        assert findings(pid)[1] == []
