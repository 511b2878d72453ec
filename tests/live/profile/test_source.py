# SPDX-License-Identifier: GPL-3.0-or-later
"""Source lines in recordings, and the time of each line."""
import json
import os
import pathlib
import re
import sqlite3
import tempfile

import pytest

import browser
import profiles
import support

OK, FAILED, USAGE = range(3)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]


@pytest.fixture(name="file", scope="module")
def fixture_file(probing, tmp_path_factory):
    file = tmp_path_factory.mktemp("source") / "run.profile"
    with support.Target(NEWEST, profiles.PROGRAM) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        done = probing(target.pid, "perf", "-d", "2s", "-r", 400, "-o", file)
        assert done.code == OK, done
    return file


def stored(file):
    database = sqlite3.connect(str(file))
    try:
        return database.execute("SELECT file, line, text FROM source").fetchall()
    finally:
        database.close()


def test_annotated(probing, file):
    text = profiles.PROGRAM.read_text().splitlines()
    done = probing(file, "perf", "--annotate", "profiled.py:burn")
    assert done.code == OK and not done.err, done
    head, columns, *rows = done.out.splitlines()
    assert head == str(profiles.PROGRAM) and columns.split() == ["self", "total", "line"]
    lines = {int(number): (part, shown) for part, number, shown in
             (re.fullmatch(r"(.{18}) +(\d+)(?:  (.*))?", row).groups() for row in rows if "…" not in row)}
    assert all((shown or "") == text[number - 1] for number, (_, shown) in lines.items())
    first = text.index("def burn(seconds):") + 1
    assert min(lines) == first and lines[first][0].strip() == ""
    assert any(re.search(r"[\d.]+ % +[\d.]+ %", part) for part, _ in lines.values())
    result = json.loads(probing(file, "perf", "--json", "--lines").out)
    found = json.loads(probing(file, "perf", "--json", "--annotate", "profiled.py").out)
    own = {}
    for row in result["functions"]:
        if row["file"] == str(profiles.PROGRAM):
            own[row["line"]] = own.get(row["line"], 0) + row["self_ns"]
    assert found["weight_ns"] == result["weight_ns"]
    assert {row["line"]: row["self_ns"] for row in found["lines"] if row["self_ns"]} == \
        {line: weight for line, weight in own.items() if weight}


def test_the_heat_map_of_the_page(probing, file, tmp_path):
    """It says of each line what --annotate says."""
    if not browser.COMMAND:
        pytest.skip("chromium is not installed")
    assert probing(file, "flamegraph", "-o", tmp_path / "run.html").code == OK
    told = json.loads(probing(file, "perf", "--json", "--annotate", "profiled.py").out)
    with browser.Browser() as page:
        page.open(str(tmp_path / "run.html") + "#picture=heat")
        rows = page.value("""[...[...document.querySelectorAll("#functions .file")]
            .find((file) => file.querySelector("summary").textContent.endsWith("profiled.py")).querySelectorAll("tr")]
            .map((row) => [...row.cells].map((cell) => cell.textContent))""")
        assert not page.errors
    shown = {int(number): (own, text) for own, _, number, text in rows if number}
    lines = told["lines"]
    hot = [line for line in lines if line["self_ns"]]
    assert hot
    for line in hot:
        own, text = shown[line["line"]]
        assert own == "%.1f %%" % (100 * line["self_ns"] / told["weight_ns"]) and text == line["text"], line


def test_nothing_to_annotate(probing, file):
    for what, says in (("nosuch.py", "no samples are in nosuch.py"), (".py", "no samples"),
                       ("profiled.py:nosuch", "no samples are in function nosuch of profiled.py")):
        done = probing(file, "perf", "--annotate", what)
        assert done.code == FAILED and says in done.err and "profiled.py" in done.err, done
    for options in (("-o", file.parent / "x.html"), ("--diff", file)):
        done = probing(file, "perf", "--annotate", "x.py", *options)
        assert done.code == USAGE and "--annotate is not for " in done.err


def test_of_a_process(probing):
    with support.Target(NEWEST, profiles.PROGRAM) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        done = probing(target.pid, "perf", "-d", "1s", "--annotate", "profiled.py:burn")
    assert done.code == OK and "sum(range(100))" in done.out, done


def test_page_of_a_recording(probing, file, tmp_path):
    """The lines are in the page also when it is made later, and not if unwanted."""
    for options, there in (((), True), (("--no-source",), False)):
        page = tmp_path / "run.html"
        assert probing(file, "flamegraph", "-o", page, *options).code == OK
        assert ("sum(range(100))" in page.read_text()) == there


def test_left_out(probing, tmp_path):
    """No source if unwanted, or if a path looks like a secret; the table says so."""
    for name, options, there in (("program.py", (), True), ("program.py", ("--no-source",), False),
                                 ("my-token.py", (), False)):
        program, file = tmp_path / name, tmp_path / "run.profile"
        program.write_text("print('ready', flush=True)\nwhile True: len('treasure')\n")
        os.utime(program, (1e9, 1e9))
        with support.Target(NEWEST, program) as target:
            assert target.line() == "ready"
            assert profiles.repeated(lambda: probing(target.pid, "perf", "-d", "500ms", "-o", file, *options),
                                     lambda found: profiles.has_samples(found.out)).code == OK
        assert bool(stored(file)) == there
        done = probing(file, "perf", "--annotate", name, "--mode", "wall")
        assert ("treasure" in done.out) == there and ("Lines without text" in done.out) != there


def test_older_recordings_have_none(probing, file, tmp_path):
    old = tmp_path / "old.profile"
    old.write_bytes(file.read_bytes())
    database = sqlite3.connect(str(old))
    database.execute("DROP TABLE source")
    database.commit()
    database.close()
    assert probing(old, "perf").out == probing(file, "perf").out
    assert "Lines without text" in probing(old, "perf", "--annotate", "profiled.py").out


@pytest.fixture(name="open_folder")
def fixture_open_folder():
    """A folder that other users can read."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


def test_of_a_program_that_has_ended(probing, open_folder):
    """Its files are read from our view. It chose the names: files that its user may not read are left out."""
    program, file = open_folder / "program.py", open_folder / "run.profile"
    others = [open_folder / name for name in ("everybody.py", "private.py")]
    for other in others:
        other.write_text("# in %s\n" % other.name)
        os.utime(other, (1e9, 1e9))
    others[1].chmod(0o600)
    program.write_text("import os, time\nif os.getuid() == 0: os.setgroups([]); os.setgid(4321); os.setuid(4321)\n"
                       "code = 'def f():\\n    for _ in range(20000): pass'\n"
                       "functions = []\nfor name in %r:\n    made = {}\n"
                       "    exec(compile(code, name, 'exec'), made)\n    functions.append(made['f'])\n"
                       "end = time.process_time() + 1.5\nwhile time.process_time() < end:\n"
                       "    for f in functions: f()\n" % list(map(str, others)))
    os.utime(program, (1e9, 1e9))
    for _ in range(20):
        done = probing("perf", "-r", 500, "-o", file, "--", "/usr/bin/python3", program)
        assert done.code == OK, done
        # On a busy machine there may be few samples.
        named = {row["file"] for row in json.loads(probing(file, "perf", "--json").out)["functions"]}
        if named >= set(map(str, others)):
            break
    lines = [text for _, _, text in stored(file)]
    assert "    for f in functions: f()" in lines and "# in everybody.py" in lines, done
    assert ("# in private.py" in lines) == (os.getuid() != 0)
