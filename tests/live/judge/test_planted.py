# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why` on each planted hang and each program that only waits; docs/why.md has the figures, docs/why.tsv each
verdict. `make gen-why` sets $PROBING_WHY_TABLE, and both are written."""
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

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
PAGE, LIST = DOCS / "why.md", DOCS / "why.tsv"
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


def verdicts(seen):
    """Lines of docs/why.tsv: {(part, kind): (verdict, confidence, whether the line is named)}."""
    return {(part, kind): (finding["rule"], finding["confidence"], "yes" if named else "no") if finding else ("nothing", "", "no")
            for part, kinds in seen.items() for kind, (finding, named) in kinds.items()}


def listed():
    lines = [line.split("\t") for line in LIST.read_text(encoding="utf-8").splitlines()[3:]]
    return {tuple(line[:2]): tuple(line[2:]) for line in lines}


def figures(found):
    """Rows of the table of docs/why.md."""
    rows = []
    for part in PARTS:
        own = [(verdict, named) for (of, _), (verdict, _, named) in found.items() if of == part]
        rows.append("| %s | %d | %d | %d | %d |" % (
            part, len(own), sum(named == "yes" for _, named in own),
            sum((verdict != "nothing", named) == (True, "no") for verdict, named in own),
            sum(verdict == "nothing" for verdict, _ in own)))
    return "\n".join(rows)


def by_confidence(found):
    """Rows of the table after it. A finding without the line is wrong, and one about a program that only waits."""
    seen = [(confidence, PARTS[part] is not hangs.IDLE and named == "yes")
            for (part, _), (verdict, confidence, named) in found.items() if verdict != "nothing"]
    return "\n".join("| %s | %d | %d |" % (level, seen.count((level, True)), seen.count((level, False)))
                     for level in ("high", "medium", "low"))


def without_line(found):
    kinds = [kind for (part, kind), (verdict, _, named) in found.items()
             if PARTS[part] is not hangs.IDLE and named == "no" and verdict != "nothing"]
    return "Found without the line: %s." % (", ".join(kinds) or "none")


def write(found):
    lines = ["# SPDX-License-Identifier: GPL-3.0-or-later", "# First verdicts of `probing why` on planted programs, by make gen-why.",
             "part\tprogram\tverdict\tconfidence\tline", *("\t".join((*key, *value)) for key, value in found.items())]
    LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    page = re.sub(r"(?m)(?<=^\|---\|---\|---\|---\|---\|\n)(\| .*\n)+", lambda _: figures(found) + "\n", page, count=1)
    page = re.sub(r"(?m)(?<=^\| confidence \| right \| wrong \|\n\|---\|---\|---\|\n)(\| .*\n)+", lambda _: by_confidence(found) + "\n", page)
    PAGE.write_text(re.sub(r"(?m)^Found without the line: .*$", lambda _: without_line(found), page), encoding="utf-8")


def test_the_page_has_the_figures(seen):
    found = verdicts(seen)
    if os.environ.get("PROBING_WHY_TABLE"):
        write(found)
    page = PAGE.read_text(encoding="utf-8")
    assert figures(found) in page and without_line(found) in page
    # Which rule comes first, and so its confidence, may depend on the moment: none may be wrong.
    assert [row.split(" | ")[2] for row in by_confidence(found).split("\n")] == ["0 |"] * 3
    assert set(listed()) == set(found)
    assert figures(listed()) in page and by_confidence(listed()) in page and without_line(listed()) in page
