# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the wheel in roots of other distributions: an older and newer glibc than that of the build."""

import os
import re
import subprocess
import zipfile

import pytest
import support
from wheels import wheel  # noqa: F401

ROOTS = [each for each in support.INTERPRETERS if each.chroot and not each.debug_build]
if not support.LONG:
    ROOTS = ROOTS[:1] + ROOTS[1:][-1:]  # the oldest and the newest
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

# A mount namespace of its own: the root stays as it is.
ENTER = 'mount -t tmpfs none "$0/tmp" && mkdir -p "$0/proc" && mount -t proc none "$0/proc" && ' \
    'cp -r "$1" "$0/tmp/wheel" && exec chroot "$0" "$2" -c "$3"'
PROGRAM = """
import os, subprocess, sys, threading
sys.path.insert(0, "/tmp/wheel")
os.environ["PROBING_AGENT"] = "/tmp/wheel/probing/libprobing-agent.so"
def run(*words):
    found = subprocess.run(["/tmp/wheel/program", *words], stdout=subprocess.PIPE, check=True)
    print(found.stdout.decode())
def here():
    secret = 1234
    run("--version")
    run(str(os.getpid()), "bt", "--locals", "--native")
    run(str(os.getpid()), "eval", "6 * 7")
    run(str(os.getpid()), "query", "SELECT count(*) > 0 AS found FROM python.threads", "-f", "json")
threading.Thread(target=int).start()
here()
import probing
with probing.attach(os.getpid()) as p:
    print("library:", len(p.threads()))
"""


@needs_root
@pytest.mark.skipif(not ROOTS, reason="no interpreter here has a root of its own")
@pytest.mark.parametrize("interpreter", ROOTS, ids=repr)
def test_works_in_another_distribution(wheel, interpreter, tmp_path):
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    script, = tmp_path.glob("*.data/scripts/probing")
    script.rename(tmp_path / "program")
    for path in [tmp_path / "program", *tmp_path.glob("probing/*.so")]:
        path.chmod(0o755)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", ENTER, interpreter.chroot, tmp_path, interpreter.chroot_exe,
         PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120,
        env={"PATH": os.environ["PATH"]})
    out = done.stdout.decode()
    assert done.returncode == 0, done
    for expected in ("probing 1", "secret = 1234", "here", "\n42\n", '"found":1', "library: "):
        assert expected in out, done


def test_asks_for_an_old_glibc(wheel, tmp_path):
    """2.28 is that of Debian 10 and RHEL 8; the agent is loaded into processes that may have 2.17."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    agent = subprocess.run(["objdump", "-T", tmp_path / "probing/libprobing-agent.so"],
                           stdout=subprocess.PIPE, check=True).stdout.decode()
    assert max(tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", agent)) <= \
        (2, 17)
    if "-linux_" in wheel.name:
        pytest.skip("this wheel is for this system alone")
    assert "-manylinux_2_28_" in wheel.name
