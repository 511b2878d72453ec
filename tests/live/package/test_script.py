# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing script`: files, code, arguments, exit codes."""

import signal
import subprocess

import pytest
import support
from scripts import run


def test_a_file_with_its_arguments(target, newest, tmp_path):
    process = target("walked.py")
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint([t.name for t in p.threads() if t.main], sys.argv[1:])\n"
                      "print(p.threads()[0].frames[0].locals['self'].step)\nsys.exit(7)\n")
    for words in (["script", script, process.pid, "a", "b"],
                  ["-t", process.pid, "script", script, "a", "b"]):
        result = run(*words)
        assert (result.out, result.code) == ("['MainThread'] ['a', 'b']\n12\n", 7), result


def test_code_and_what_goes_wrong(target, newest):
    process = target("walked.py")
    assert run(process.pid, "script", "-c", "print(len(p.threads()))").out == "2\n"
    result = run(process.pid, "script", "-c", "1 / 0")
    assert result.code == 1 and result.err.count("Traceback") == 1, result
    assert "_script.py" not in result.err and "ZeroDivisionError" in result.err, result
    assert run("script").code == 2
    result = run("script", "-c", "0", "4194304")
    assert result.code == 1 and "No such process" in result.err, result
    result = run(process.pid, "script", "-c", "0", env={"PYTHON": "/nowhere/python"})
    assert "cannot start /nowhere/python" in result.err, result


# Debian 11's interpreters have a C library older than this build needs.
PYTHONS = [i for i in support.INTERPRETERS if i.version >= (3, 6) and "bullseye" not in i.exe]


@pytest.mark.parametrize("python", PYTHONS, ids=repr)
def test_scripts_run_in_each_python(python, target, newest):
    if not python.has_ctypes:
        pytest.skip("it has no ctypes")
    process = target("walked.py")
    code = "f = p.thread().frames[0]; m = f.locals['self'].model; print(f.qualname, m.type.name, " \
        "len(m.weights), m.size > 0, p.query('SELECT 1 AS one'), list(p.find('Slotted')) == [m])"
    result = run(process.pid, "script", "-c", code, env={**python.env, "PYTHON": python.exe})
    assert result.out == "Trainer.run Slotted 3 True [{'one': 1}] True\n" and result.code == 0, result


def test_nothing_is_imported_from_the_current_folder(target, newest, tmp_path):
    process = target("walked.py")
    for name in ("ctypes.py", "ast.py", "probing.py", "re.py"):
        (tmp_path / name).write_text("print('imported')\n")
    result = run(process.pid, "script", "-c", "print('ran')", cwd=tmp_path)
    assert result.out == "ran\n", result


def test_ctrl_c_ends_a_script(target, newest, tmp_path):
    """Also within a statement, which is C for long."""
    process = target("walked.py")
    slow = "p.query('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) " \
        "SELECT count(*) FROM n')"
    for code in (slow, "v = p.thread().frames[0].locals\nwhile True: repr(v['self'])"):
        script = tmp_path / "endless.py"
        script.write_text("print('begins', flush=True)\n%s\n" % code)
        with subprocess.Popen([support.BINARY, "script", script, str(process.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            assert running.stdout.readline() == b"begins\n", running.stderr.read()
            running.send_signal(signal.SIGINT)
            err = running.stderr.read()
        assert running.returncode == 130 and b"interrupted" in err, (running.returncode, err)
