# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing skill`: each diagnosis, on a program with that problem."""
import json
import subprocess

import pytest

import support
import training
from deadlock import deadlocked  # noqa: F401

OK, FAILED, USAGE = range(3)
SKILLS = ["deadlock", "gil", "hang", "leak", "server", "slow"]


def skill(*words):
    done = subprocess.run([support.BINARY, "skill", *map(str, words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_list():
    code, out, err = skill("list")
    assert (code, err) == (OK, "") and [line.split()[0] for line in out.splitlines()] == SKILLS
    assert [item["name"] for item in json.loads(skill("--json")[1])] == SKILLS


@pytest.mark.parametrize("name", SKILLS)
def test_every_query_is_right(deadlocked, name):
    code, out, err = skill("run", name, deadlocked.pid, "--json")
    # Of a process that is none of a server, that is said.
    assert code == OK and {line.split("warning: ")[1].split(" is empty")[0] for line in err.splitlines()} == (
        {"inference." + table for table in ("kv", "queues", "requests", "servers")} if name == "server" else set()), err
    sections = json.loads(out)
    assert len(sections) > 1
    for section in sections:
        assert section["error"] is None and section["title"], section
    assert all(section["sql"] for section in sections[1:])


def test_a_deadlock_is_found(deadlocked):
    out = json.loads(skill("run", "deadlock", deadlocked.pid, "--json")[1])
    circle = out[1]["rows"]
    assert len(circle) == 2
    assert {row["tid"] for row in circle} == {row["owner"] for row in circle}
    code, text, _ = skill("run", "hang", deadlocked.pid)
    assert code == OK and text.count("held by") >= 2


@pytest.mark.parametrize("name", SKILLS)
def test_the_verdict_comes_first(deadlocked, name):
    why = subprocess.run([support.BINARY, "why", "--json", str(deadlocked.pid)], stdout=subprocess.PIPE, check=False)
    [target] = json.loads(why.stdout)["targets"]
    sections = json.loads(skill("run", name, deadlocked.pid, "--json")[1])
    assert [finding["sentence"] for finding in sections[0]["findings"]] == [
        finding["sentence"] for finding in target["findings"]]
    assert "deadlock" in [finding["rule"] for finding in sections[0]["findings"]]
    assert all("findings" not in section for section in sections[1:])
    text = skill("run", name, deadlocked.pid)[1]
    assert text.index("deadlock: threads ") < text.index(sections[0]["title"])


def test_of_a_snapshot(deadlocked, tmp_path):
    file = tmp_path / "one.snapshot"
    subprocess.run([support.BINARY, str(deadlocked.pid), "snapshot", "-o", file], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    assert len(json.loads(skill("run", "deadlock", file, "--json")[1])[1]["rows"]) == 2


@pytest.mark.parametrize("words, told", [
    (["run", "nope", "1"], "no skill 'nope'"), (["run", "hang"], "no target given"),
    (["walk"], "'list' or 'run NAME'"), (["run", "hang", "1", "-t", "2"], "one target"),
])
def test_what_makes_no_sense(words, told):
    code, out, err = skill(*words)
    assert code == USAGE and not out and told in err


def test_tensors_that_a_program_keeps_are_named():
    def tensors(program):
        section, = [each for each in json.loads(skill("run", "leak", program.pid, "--json")[1])
                    if each["title"].startswith("Tensors")]
        return section["rows"]

    with training.SYSTEM.start("leaks.py") as program:
        assert program.line(timeout=400) == "ready"
        assert tensors(program) == [], "a tensor that nothing keeps"
        program.send(b"once\n")
        assert program.line(timeout=400) == "leaked"
        row, = tensors(program)
    assert row["tensors"] == 100 and row["mb"] == 0.4 and \
        row["held_by"] == "__main__.keep.__closure__[…].cell_contents[…]", row
