# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and files of code with a NUL in them: all of it is shown, and no other file is opened."""
import pytest

import support

PROGRAM = """
import sys, threading

def cut():
    print("ready")
    sys.stdout.flush()
    sys.stdin.read()

names = {"co_name": "before\\0after", "co_filename": FILE + "\\0hidden.py"}
if sys.version_info >= (3, 11):
    names["co_qualname"] = "Class.before\\0after"
cut.__code__ = cut.__code__.replace(**names)
threading.current_thread().name = "thread\\0name"
cut()
"""


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
def test_names_are_not_cut(interpreter, probing, tmp_path):
    other = tmp_path / "other.py"
    other.write_text("another file's line\n" * 20, encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text("FILE = %r\n" % str(other) + PROGRAM, encoding="utf-8")
    with support.Target(interpreter, script) as target:
        target.line()
        support.wait_for_sleep(target.pid, "pipe_read")
        dump = support.dump(target.pid, "--source")
        text = probing(target.pid, "debug", "--dump", "--source")
        folded = probing(target.pid, "query", "-f", "csv",
                         "SELECT func, file FROM python.backtrace WHERE depth = 0")
    frame = support.python_frames(dump["threads"][0])[0]
    assert (frame["func"], frame["file"]) == (r"before\x00after", str(other) + r"\x00hidden.py"), frame
    assert dump["threads"][0]["name"] == r"thread\x00name", dump
    if interpreter.version >= (3, 11):
        assert frame["qualname"] == r"Class.before\x00after", frame
    assert r"before\x00after" in text.out and r"other.py\x00hidden.py" in text.out, text
    assert "another file's line" not in text.out and "another file's line" not in str(dump)
    assert folded.out.splitlines()[1] == r"before\x00after,%s\x00hidden.py" % other, folded
