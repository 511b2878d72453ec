# SPDX-License-Identifier: GPL-3.0-or-later
"""What `probing why` reads of each process of a pool: what the kernel makes up slowly, it reads once or twice."""
import collections
import re
import shutil
import subprocess

import psutil
import pytest

import support
from test_why import running

POOL = """
import multiprocessing
multiprocessing.set_start_method("fork")
pool = multiprocessing.Pool(6)
print(flush=True)
input()
"""


def test_the_maps_of_a_process_are_read_for_each_other_once(tmp_path):
    """Once for itself, and once where all who share a semaphore are looked for, however many processes wait for it."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    with running(POOL) as program:
        children = [str(child.pid) for child in psutil.Process(program.pid).children()]
        assert len(children) >= 6
        log = tmp_path / "log"
        subprocess.run(["strace", "-f", "-e", "trace=openat", "-o", log, support.BINARY, "why", str(program.pid), *children],
                       stdout=subprocess.DEVNULL, check=True)
        opened = collections.Counter(re.findall(r'openat\([^,]*, "(?:/proc/(\d+)/)?(maps)"', log.read_text()))
        # By the folder of a process, which the log does not name: of the parent and of each child.
        assert opened["", "maps"] <= 2 * (len(children) + 1), opened
        for child in children:
            assert opened[child, "maps"] <= 2, opened
