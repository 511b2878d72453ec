# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why` on each planted hang and each program that only waits; docs/why.md has the figures."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

import hangs
import support

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/why.md"
STILL = 21  # seconds: a little more than the rule `still` wants
PARTS = {"locks": hangs.LOCKS, "queues, futures": hangs.QUEUES, "pipes, sockets, files": hangs.FILES,
         "processes": hangs.PROCESSES, "asyncio": hangs.ASYNC, "none: they only wait": hangs.IDLE}


@contextlib.contextmanager
def started(folder, source):
    path, line = hangs.write(folder, source)
    reader, writer = os.pipe()
    process = subprocess.Popen(["/usr/bin/python3", str(path)], cwd=folder, env=hangs.environment(), stdin=reader,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    os.close(reader)
    try:
        yield process.pid, line
    finally:
        os.close(writer)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def first_finding(pid):
    done = subprocess.run([support.BINARY, "why", "--json", str(pid)], stdout=subprocess.PIPE, check=False)
    [target] = json.loads(done.stdout)["targets"]
    # A circle is told once, whatever it is made of.
    assert [each["kind"] for each in target["findings"]].count("deadlock") < 2, target
    # Memory is this machine's affair.
    return next((each for each in target["findings"] if each["kind"] != "memory"), None)


@pytest.fixture(scope="module", name="seen")
def fixture_seen(tmp_path_factory):
    """{part: {kind: (finding, whether it has the line)}}: all at once, since they only sleep."""
    found = {part: {} for part in PARTS}
    with contextlib.ExitStack() as stack:
        programs = [(part, kind, *stack.enter_context(started(tmp_path_factory.mktemp("planted"), source)))
                    for part, kinds in PARTS.items() for kind, source in kinds.items()]
        began = time.monotonic()
        # They have to sleep so long.
        while time.monotonic() < began + STILL + len(programs) / 20:
            time.sleep(0.2)
        for part, kind, pid, line in programs:
            finding, asked = first_finding(pid), time.monotonic()
            # It may have come late to its wait.
            while not finding and PARTS[part] is not hangs.IDLE and time.monotonic() < asked + 2 * STILL:
                finding = first_finding(pid)
            found[part][kind] = finding, bool(finding) and "hung.py:%s" % line in json.dumps(finding)
    return found


def test_hangs_are_found_and_idle_programs_are_not(seen):
    idle = seen["none: they only wait"]
    assert {kind: finding for kind, (finding, _) in idle.items() if finding} == {}
    hung = {kind: each for part, kinds in seen.items() for kind, each in kinds.items() if kinds is not idle}
    assert [kind for kind, (finding, _) in hung.items() if not finding] == []
    assert {kind: finding for kind, (finding, named) in hung.items()
            if finding["confidence"] == "high" and not named} == {}
    assert sum(named for _, named in hung.values()) >= 0.9 * len(hung), hung


def test_the_page_has_the_figures(seen):
    rows = {part: (len(kinds), sum(named for _, named in kinds.values()),
                   sum(bool(finding) and not named for finding, named in kinds.values()),
                   sum(not finding for finding, _ in kinds.values())) for part, kinds in seen.items()}
    shown = {part: tuple(map(int, figures)) for part, *figures in re.findall(
        r"^\| (.+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.M)}
    assert shown == rows
