# SPDX-License-Identifier: GPL-3.0-or-later
"""The lists of tests that may be skipped or run twice say what the tests say, and are obeyed."""
import ast
import os
import pathlib
import re
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import ledgers  # noqa: E402
import results  # noqa: E402


def template(node):
    """The text that a reason is made from, with * for what is filled in; None if it is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "*" for part in node.values)
    if isinstance(node, ast.BinOp):
        left = template(node.left)
        if isinstance(node.op, ast.Mod):
            return left and re.sub(r"%[a-z]", "*", left)
        return left and left + "*"
    return None


def reasons_of_python(path):
    """(where, reason) of each skip that a file has."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        where = "%s:%d" % (path.relative_to(TESTS), node.lineno)
        if name == "importorskip":
            yield where, "could not import '%s': *" % node.args[0].value
        elif name in ("skip", "skipif", "needs", "Skipped"):
            given = [word.value for word in node.keywords if word.arg == "reason"] or node.args[:1]
            # needs() itself hands on what it was given.
            if not isinstance(given[0], ast.Name):
                yield where, template(given[0])


def reasons():
    for path in sorted(TESTS.rglob("*.py")):
        if path.name != "test_ledgers.py":
            yield from reasons_of_python(path)
    for path in sorted(TESTS.rglob("*.c")):
        for reason in re.findall(r'\b(?:SKIP|NOT_TESTED)\("([^"]*)"\)', path.read_text()):
            yield str(path.relative_to(TESTS)), reason


REASONS = list(reasons())


def may_be(listed, reason):
    """Whether there is a text that is both; each may have parts that are not known."""
    return ledgers.matches(listed, reason) or ledgers.matches(reason, listed)


def test_each_reason_is_listed():
    for where, reason in REASONS:
        assert reason, "%s: write the reason of the skip as a text" % where
        assert any(may_be(listed, reason) for _, listed in ledgers.skips()), \
            "%s: '%s' is not in tests/skips.txt" % (where, reason)


def test_each_listed_reason_is_used():
    for provider, listed in ledgers.skips():
        assert provider in ledgers.PROVIDERS, provider
        assert any(may_be(listed, reason) for _, reason in REASONS), \
            "tests/skips.txt: no test is skipped because '%s'" % listed


def test_no_test_is_skipped_without_a_reason():
    for path in sorted((TESTS / "unit").glob("*.c")):
        assert not re.search(r"\bskip\(\)", path.read_text()), "%s: use SKIP()" % path.name
    # Nobody is told of a whole file that is skipped.
    for path in sorted((TESTS / "live").rglob("*.py")):
        assert "allow_module_" "level" not in path.read_text(), path.name


def test_each_quarantined_test_exists():
    files = {path.name: path.read_text() for path in (TESTS / "live").rglob("test_*.py")}
    for listed, reason in ledgers.quarantine():
        file, _, test = listed.partition("::")
        names = re.findall(r"^def (test_\w+)\(", files.get(file, ""), re.M)
        assert reason and any(ledgers.matches(test.split("[")[0], name) for name in names), listed


# In a run

CONFTEST = (pathlib.Path(__file__).parent / "conftest.py").read_text()

def outside():
    """The environment without what this run was told."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PROBING_")}


def run(tmp_path, text, name="test_program.py", **environment):
    """The exit status and the last lines of a run of one file."""
    (tmp_path / name).write_text(text)
    (tmp_path / "conftest.py").write_text(CONFTEST.replace(
        "pathlib.Path(__file__).resolve().parents[1]", "pathlib.Path(%r)" % str(TESTS)))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / name)],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False,
        env=dict(outside(), **environment))
    return done.returncode, done.stdout


def skipping(reason):
    return "import pytest\ndef test_it(): pytest.skip(%r)\n" % reason


@pytest.mark.parametrize("reason, environment, status", [
    ("gdb is not installed", {}, 0),
    ("gdb is not installed", {"PROBING_CI": "1"}, 1),
    ("groff is not installed", {"PROBING_CI": "1"}, 0),
    ("this processor has no AMX", {"PROBING_CI": "1"}, 0),
    ("it is Tuesday", {}, 1),
    ("it is Tuesday", {"PROBING_REPEAT": "all"}, 1),
])
def test_skips(tmp_path, reason, environment, status):
    code, out = run(tmp_path, skipping(reason), **environment)
    assert code == status, out
    assert (status == 0) == ("MUST NOT BE SKIPPED" not in out), out


STARTS = "import subprocess\ndef test_it(): subprocess.run([%r], check=True, env={'PATH': ''})\n"


@pytest.mark.parametrize("program, status", [("gcore", 0), ("probing", 1)])
def test_only_programs_that_may_be_missing_make_a_test_skipped(tmp_path, program, status):
    code, out = run(tmp_path, STARTS % program)
    assert code == status and ("1 skipped" in out) == (status == 0), out


FAILS = "def test_it(): assert 0\n"
# One that the list has, and one that it has not.
LISTED = "test_program.py::test_listed[*] | it is known\n"
DIES = "import pytest\n@pytest.mark.parametrize('each', [1])\n" \
       "def test_listed(each): assert 0\ndef test_other(): assert %d\n"

MANY = "import pytest\n@pytest.mark.parametrize('each', range(%d))\ndef test_it(each): assert 0\n"


@pytest.mark.parametrize("text, repeat, status", [
    (DIES % 1, "quarantined", ledgers.AGAIN),
    (DIES % 1, "", 1),
    (DIES % 0, "quarantined", 1),
    (DIES % 0, "all", ledgers.AGAIN),
    (DIES % 1 + FAILS, "quarantined", 1),
    (FAILS + skipping("it is Tuesday").replace("test_it", "test_that"), "all", 1),
    (MANY % 10, "all", ledgers.AGAIN),
    (MANY % 11, "all", 1),
    ("def test_it(): pass\n", "all", 0),
    ("def test_it(:\n", "all", 2),
])
def test_what_is_run_again(tmp_path, text, repeat, status):
    (tmp_path / "quarantine.txt").write_text(LISTED)
    code, out = run(tmp_path, text, PROBING_REPEAT=repeat,
                    PROBING_QUARANTINE=str(tmp_path / "quarantine.txt"))
    assert code == status, out
    assert status != ledgers.AGAIN or "MAY BE RUN ONCE MORE" in out, out


@pytest.mark.parametrize("text, failed, again", [
    (FAILS, 0, 1),
    (FAILS + skipping("it is Tuesday").replace("test_it", "test_that"), 2, 0),
    (MANY % 11, 11, 0),
])
def test_only_what_is_run_again_counts_then(tmp_path, text, failed, again):
    run(tmp_path, text, PROBING_REPEAT="all", PROBING_RESULTS=str(tmp_path))
    counts = results.read(next(tmp_path.glob("*.json")))
    assert (len(counts.failed), len(counts.again)) == (failed, again)


def test_names_of_those_that_pass_are_added(tmp_path):
    for _ in range(2):
        run(tmp_path, DIES % 1, PROBING_PASSED_TO="passed")
    assert (tmp_path / "passed").read_text() == "test_program.py::test_other\n" * 2


def collected(**environment):
    """The names of the live tests of a file that would be run."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "tests/live/cli/test_cli.py"],
        cwd=TESTS.parent, stdout=subprocess.PIPE, text=True, check=True,
        env=dict(outside(), **environment)).stdout.split("\n\n")[0].splitlines()


def test_those_that_passed_are_not_run(tmp_path):
    names = collected()
    (tmp_path / "passed").write_text("\n".join(names[1:]) + "\n")
    assert len(names) > 2 and collected(PROBING_PASSED=str(tmp_path / "passed")) == names[:1]


def test_what_tests_look_for_in_the_tree_is_there():
    """A file that moved away would only be a reason to skip. What is built is not there at first, nor is
    .git in a source archive."""
    for file in sorted(TESTS.glob("**/*.py")):
        for names in re.findall(r'\bROOT((?: */ *"[^"]+")+)', file.read_text()):
            top = re.findall(r'"([^"/]+)', names)[0]
            assert top in ("build", ".git") or "%" in top or (TESTS.parent / top).exists(), (file, names)
    assert '"gateway/web/dist' in (TESTS / "live/web_page.py").read_text()
    assert "dist" in (TESTS.parent / "gateway/web/build.mjs").read_text()
