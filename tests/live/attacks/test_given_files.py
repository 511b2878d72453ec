# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are named to the command, and the command's own file."""
import os
import shutil
import subprocess
import threading

import pytest

import faults
import support
from environment import OK, PERMISSION, USAGE
from sockets_support import as_attacker


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_library_that_is_a_pipe(build, probing, pipe):
    with faults.Checked(build.program("fault_places"), "idle") as target:
        for path in (pipe, "/dev/null", pipe.parent):
            done = probing(target.pid, "inject", "--library", path)
            assert done.code == USAGE and "is not a regular file" in done.err, done


def test_code_from_a_pipe(target, probing, pipe):
    """Without a writer: an error. With one, present or past: the written code is run."""
    process = target("obeys.py")
    done = probing(process.pid, "eval", "-f", pipe)
    assert done.code == USAGE and "nobody writes" in done.err, done
    writer = threading.Thread(target=lambda: pipe.write_text("'from the pipe'"))
    writer.start()
    while True:
        done = probing(process.pid, "eval", "-f", pipe)
        if "nobody writes" not in done.err:
            break  # the thread has begun
    assert done.code == OK and done.out == "'from the pipe'\n", done
    writer.join()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give its rights away")
@pytest.mark.parametrize("name", ["probing", "probing-inject"])
def test_a_program_file_that_gives_rights(open_folder, name):
    """Everybody could use it on every process."""
    copy = open_folder / name
    shutil.copy(os.path.join(os.path.dirname(support.BINARY), name), copy)
    for mode, code in ((0o755, OK), (0o4755, PERMISSION), (0o755, OK)):
        copy.chmod(mode)
        done = subprocess.run([copy, "--version"], preexec_fn=as_attacker, cwd="/",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == code, (oct(mode), done)
        assert code == OK or b"gives rights" in done.stderr, done
