# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why` on random programs of locks, forks and ended threads: no false proof, and no deadlock that is denied."""
import subprocess
import sys

import pytest

import random_locks
import support

PLACES = support.one_per_version((3, 6))


@pytest.mark.parametrize("interpreter", PLACES, ids=repr)
def test_random_locks(interpreter):
    first = 1000000 + 10000 * PLACES.index(interpreter)
    for seed in range(first, first + support.count(2, 1000)):
        for truth, said, right in random_locks.run(interpreter, seed):
            assert right is True, (interpreter, seed, truth, said, right)


def test_the_page_has_the_results():
    """docs/why.md has the numbers of the runs, and no others."""
    subprocess.run([sys.executable, str(support.ROOT / "tests/tools/random-locks"), "--check"], check=True)
