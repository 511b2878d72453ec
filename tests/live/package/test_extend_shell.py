# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts, words for waits and tables of the user's own in `dump`, `print` and `query` of a shell."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import support
import tables
from scripts import run
from test_extend import own, walked  # noqa: F401 (fixtures)

SLOTTED = "Slotted of 3 weights"
WORDS = "the lock of the trainer"
SPY = "#!/bin/sh\necho started >> %s\nexec %s \"$@\"\n"


def kinds_of(process, folder):
    """Words for the target: the process, a snapshot, and a core file, last since gcore may be missing."""
    yield process.pid
    saved = folder / "all.snapshot"
    assert run(process.pid, "snapshot", "--heap", "-o", saved).code == 0
    yield saved
    yield tables.core_of(process.pid, folder)


def test_the_same_of_a_process_a_core_and_a_snapshot(walked, own, tmp_path):  # noqa: F811
    env, _ = own
    for target in kinds_of(walked, tmp_path):
        dumped = run("dump", target, "--locals", env=env)
        assert (dumped.code, dumped.err) == (0, ""), dumped
        assert "model=%s lazy=" % SLOTTED in dumped.out and WORDS in dumped.out, dumped
        shown = run(target, "print", "self.model", env=env)
        assert (shown.out, shown.err) == (SLOTTED + "\n", ""), shown
        shown = run(target, "print", "vars(self)", env=env)
        assert "'model': %s," % SLOTTED in shown.out, shown
        rows = run(target, "query", "-f", "json", "SELECT d.*, waits_for FROM depths AS d JOIN "
                   "python.threads AS t ON t.name = d.thread ORDER BY thread", env=env)
        assert rows.code == 0, rows
        found = json.loads(rows.out)
        assert [row["thread"] for row in found] == ["MainThread", "wanter"], rows
        assert found[1] == {"thread": "wanter", "half": 0.5, "quoted": "it's", "cell": None,
                            "waits_for": WORDS}, rows
        rows = run(target, "query", "-f", "json", "SELECT value FROM python.locals WHERE "
                   "name = 'self' AND value LIKE '%%model=%s lazy%%'" % SLOTTED, env=env)
        assert len(json.loads(rows.out)) == 1, rows


def test_json_and_statements(walked, own):  # noqa: F811
    env, _ = own
    dumped = json.loads(run("dump", walked.pid, "--json", "--locals", env=env).out)
    threads = {thread["name"]: thread for thread in dumped["threads"]}
    assert threads["wanter"]["waits_for"] == WORDS
    assert SLOTTED in json.dumps(threads["MainThread"])
    several = run(walked.pid, "query", "-f", "csv", "SELECT count(*) FROM empty; SELECT count(*) "
                  "FROM depths; SELECT d.half FROM depths d, depths e LIMIT 1", env=env)
    assert several.out == "count(*)\n0\n\ncount(*)\n2\n\nhalf\n0.5\n", several
    wrong = run(walked.pid, "query", "SELECT * FROM deepths", env=env)
    assert wrong.code == 2 and "no such table: deepths" in wrong.err, wrong
    wrong = run(walked.pid, "query", "DELETE FROM depths", env=env)
    assert wrong.code != 0 and not wrong.out, wrong


def test_a_named_file(walked, own, tmp_path):  # noqa: F811
    _, file = own
    moved = file.rename(tmp_path / "elsewhere.py")
    assert WORDS in run("dump", walked.pid, "--script", moved).out
    assert run(walked.pid, "print", "self.model", "--script", moved).out == SLOTTED + "\n"
    assert run(walked.pid, "query", "--script", moved, "-f", "csv", "SELECT count(*) FROM depths"
               ).out == "count(*)\n2\n"
    result = run("dump", walked.pid, "--script", tmp_path / "missing.py")
    assert result.code == 0 and "missing.py" in result.err and "MainThread" in result.out, result


def test_nothing_is_started_for_nothing(walked, own, tmp_path):  # noqa: F811
    env, file = own
    spy, log = tmp_path / "python3", tmp_path / "log"
    spy.write_text(SPY % (log, sys.executable))
    spy.chmod(0o755)
    env = dict(env, PYTHON=str(spy))

    def starts(*words):
        assert run(*words, env=env).code == 0
        count = log.read_text().count("started") if log.exists() else 0
        log.write_text("")
        return count

    commands = (("dump", walked.pid), ("dump", walked.pid, "--locals"), (walked.pid, "print", "self"),
                (walked.pid, "query", "SELECT 1"))
    assert [starts(*words) for words in commands] == [1, 1, 1, 1]
    file.write_text("import probing\n\n@probing.printer('__main__.Slotted')\ndef f(v):\n    return 'x'\n")
    assert [starts(*words) for words in commands] == [0, 1, 1, 1]
    file.write_text("import probing\n\n@probing.command\ndef other(p):\n    pass\n")
    assert [starts(*words) for words in commands] == [0, 0, 0, 0]
    file.unlink()
    assert [starts(*words) for words in commands] == [0, 0, 0, 0]


def test_a_function_that_fails(walked, own):  # noqa: F811
    env, file = own
    file.write_text("import probing\nprint('no result')\n\n@probing.printer('__main__.Slotted')\ndef f(v):\n"
                    "    return v.nothing\n\n@probing.wait('walked.py:want')\ndef g(frame):\n"
                    "    return 1 // 0\n\n@probing.table('broken')\ndef h(p):\n    yield [1]\n"
                    "    raise ValueError('half of it')\n\n@probing.table('wide', columns=['a'])\n"
                    "def i(p):\n    return [[1], [1, 2]]\n")
    result = run("dump", walked.pid, "--locals", env=env)
    assert result.code == 0 and "<__main__.Slotted" in result.out and "RLock" in result.out, result
    assert "no result" not in result.out, result
    lines = [line for line in result.err.splitlines() if "failed" in line]
    assert len(lines) == 2 and "printer of Slotted failed" in result.err, result
    assert "ZeroDivisionError" in result.err and "mine.py:10" in result.err, result
    result = run(walked.pid, "query", "SELECT * FROM broken", env=env)
    assert result.code == 1 and not result.out and "ValueError: half of it" in result.err, result
    result = run(walked.pid, "query", "SELECT * FROM wide", env=env)
    assert result.code == 1 and "a row has more than the columns a" in result.err, result
    file.write_text("import os, probing\n# printer( wait(\nos._exit(3)\n")
    result = run("dump", walked.pid, "--locals", env=env)
    assert result.code == 0 and "MainThread" in result.out, result
    result = run("dump", walked.pid, "--locals", env=dict(env, PYTHON="/nowhere/python"))
    assert result.code == 0 and "MainThread" in result.out and "cannot start" in result.err, result


def test_it_ends_with_the_command(walked, own, tmp_path):  # noqa: F811
    """Also if code of the user hangs, and the command is killed."""
    env, file = own
    note = tmp_path / "pid"
    file.write_text("import os, probing\n\n@probing.wait('walked.py:want')\ndef g(frame):\n"
                    "    open(%r, 'w').write('%%d\\n' %% os.getpid())\n    while True:\n        pass\n"
                    % str(note))
    with subprocess.Popen([support.BINARY, "dump", str(walked.pid)], env={**os.environ, **env},
                          stdout=subprocess.DEVNULL) as command:
        end = time.monotonic() + 60
        while not (note.exists() and note.read_text().endswith("\n")):
            assert time.monotonic() < end
            time.sleep(0.01)
        pid = int(note.read_text())
        os.kill(command.pid, signal.SIGKILL)
    while os.path.exists("/proc/%d" % pid) and "\nState:\tZ" not in open(
            "/proc/%d/status" % pid, encoding="utf-8").read():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("what", ("file", "folder"))
def test_files_of_another_user(walked, own, what):  # noqa: F811
    """Files that sudo leaves in $HOME: root runs none of them for these commands either."""
    env, file = own
    file.write_text("# printer( wait( table(\nimport sys\nsys.stderr.write('EXTENSION RAN')\n")
    os.chown(file if what == "file" else file.parent, 65534, 65534)
    for words in (("dump", walked.pid, "--locals"), (walked.pid, "print", "self"),
                  (walked.pid, "query", "SELECT 1")):
        result = run(*words, env=env)
        assert result.code == 0 and "EXTENSION RAN" not in result.err, result


HOSTILE = """
import sys, time
names = ["\\x01ff ff\\x02", "\\x01", "\\x02\\x03", "\\x01%x 0\\x02a\\x03", "\\x01" * 50, "\\x1b[2J"]
Matrix = type("Matrix", (), {"deep": None})
made = [type(name, (), {name: 1})() for name in names] + [Matrix()]
for each in made:
    vars(each)["a\\x01" + hex(id(each))[2:] + " 1\\x02b\\x03"] = Matrix()
chain = None
for _ in range(100):
    link = Matrix()
    link.deep = chain
    chain = link
print("ready", flush=True)
time.sleep(1000)
"""


def test_marks_of_a_hostile_target(own, newest):  # noqa: F811
    """Names of the target may look like the marks for texts of extensions."""
    env, file = own
    file.write_text("import probing\n\n@probing.printer('__main__.Matrix')\ndef f(v):\n"
                    "    return 'M\\x1b\\x00\\udc80(' + repr(v.deep)[:500] + ')'\n")
    with support.Program([newest.exe, "-c", HOSTILE], env=newest.env) as process:
        process.line()
        support.wait_for_sleep(process.pid, "nanosleep")
        for words in (("dump", process.pid, "--locals", "--all-names"),
                      (process.pid, "print", "made"), (process.pid, "print", "chain"),
                      (process.pid, "query", "-f", "json", "SELECT * FROM python.locals")):
            result = run(*words, env=env)
            assert result.code == 0, result
            assert not set(result.out) & set("\x1b\x00\x01\x02\x03"), ascii(result.out)
            assert "M" in result.out and process.alive(), result


RULES = """
import probing

@probing.rule("waiting-main")
def waiting(p):
    for t in p.threads():
        if t.main:
            yield {"sentence": "%s does not move" % t.name, "evidence": ["a", "b\\x1b[31m"], "confidence": "medium",
                   "next": "probing list"}
    yield "a sentence"

@probing.rule("broken")
def broken(p):
    raise ValueError("no")

@probing.rule("wrong")
def wrong(p):
    yield {"sentence": "x", "certain": True}
"""


def test_rules_of_why(walked, tmp_path):  # noqa: F811
    script = tmp_path / "rules.py"
    script.write_text(RULES)
    done = run("why", "--json", "--script", script, walked.pid)
    found = [each for each in json.loads(done.out)["targets"][0]["findings"] if each["rule"] == "custom"]
    assert done.code in (10, 13, 20, 22), done
    first, second = found
    assert (first["sentence"], first["confidence"], first["next"]) == ("MainThread does not move", "medium", "probing list")
    assert [line["text"] for line in first["evidence"]] == ["a", "b\\x1b[31m"] and not first["proof"], first
    assert (second["sentence"], second["confidence"], second["evidence"]) == ("a sentence", "low", []), second
    assert "the rule broken failed: ValueError: no" in done.err and "the rule wrong failed" in done.err, done
    # Without the file, and of several targets, nothing starts.
    assert "custom" not in run("why", "--json", walked.pid).out
    assert "custom:" not in run("why", "--script", script, walked.pid, os.getpid()).out
