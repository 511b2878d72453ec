# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheel for musl: what it needs, its library in a program of musl, and an installation."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest

import support
from test_faults_musl import HEADERS
from wheels import Installed

PROGRAM = pathlib.Path(os.environ["PROBING_BINARY"])
LOADER = glob.glob("/lib/ld-musl-*.so.1")
WAITING = "rate = 0.25\ndef train(epoch):\n    print('ready', flush=True)\n    input()\n    print(answer, flush=True)\n    input()\ntrain(3)\n"


@pytest.fixture(scope="module")
def musl_wheel():
    found = sorted((PROGRAM.parent / "musl-wheel").glob("probing-*.whl"))
    if not found:
        pytest.skip("not built: make musl-wheel")
    assert len(found) == 1, found
    assert re.fullmatch(r"probing-[\d.]+-py3-none-musllinux_1_2_(x86_64|aarch64)\.whl", found[0].name)
    assert found[0].stat().st_size < 10 << 20
    return found[0]


@pytest.fixture
def unpacked(musl_wheel, tmp_path):
    with zipfile.ZipFile(musl_wheel) as file:
        file.extractall(tmp_path)
    return tmp_path


def symbols(path, which):
    text = subprocess.run(["nm", "-D", which, str(path)], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {line.split()[-1].split("@")[0] for line in text.splitlines() if " w " not in line}


@pytest.mark.skipif(not LOADER, reason="no musl-gcc")
def test_nothing_is_needed_that_musl_has_not(unpacked):
    """Of the libraries: the program is static."""
    for name in ("libprobing.so", "libprobing-agent.so"):
        missing = symbols(unpacked / "probing" / name, "--undefined-only") - symbols(LOADER[0], "--defined-only")
        assert not missing, (name, missing)
    program, = unpacked.glob("*.data/scripts/probing")
    headers = subprocess.run(["readelf", "-l", str(program)], stdout=subprocess.PIPE, check=True).stdout
    assert b"INTERP" not in headers


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc")
def test_the_library_in_a_program_of_musl(unpacked, tmp_path, newest):
    """Reads a process, and runs code in it by the agent beside it."""
    tool = tmp_path / "tool"
    subprocess.run(["musl-gcc", *HEADERS, "-I%s" % support.ROOT, "-Wall", "-Werror", "-o", str(tool),
                    str(support.ROOT / "tests/live/programs/musl_library.c")], check=True)
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    with support.Target(newest, str(script)) as process:
        assert process.line() == "ready"
        done = subprocess.run([str(tool), str(unpacked / "probing/libprobing.so"), str(process.pid),
                               "SELECT func FROM python.backtrace"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
        assert done.returncode == 0 and done.stderr == b"", done
        assert done.stdout.decode().split() == ["func", "train", "<module>"], done
        process.send(b"\n")
        assert process.line() == "42"


@pytest.mark.skipif(not support.ON_MUSL, reason="no Python on musl")
@pytest.mark.parametrize("interpreter", support.ON_MUSL[:1], ids=repr)
def test_an_installation(musl_wheel, interpreter, tmp_path):
    """By the pip of a Python on musl, which reads a process of its own kind with it."""
    installed = Installed(tmp_path / "env", interpreter.exe, musl_wheel)
    with support.Program([installed.python, "-c", WAITING]) as process:
        assert process.line() == "ready"
        done = subprocess.run([installed.program, str(process.pid), "dump", "--locals"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, timeout=60)
        assert done.returncode == 0 and b"epoch = 3" in done.stdout, done
        done = subprocess.run([installed.program, str(process.pid), "eval", "answer = 6 * 7"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
        assert done.returncode == 0 and not done.stderr, done
        process.send(b"\n")
        assert process.line() == "42"
