# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks at one place are one line, which says if they wait for different things."""
import re
import subprocess

import pytest

import support
from environment import wait_until

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
NAPS = """
import asyncio
async def nap(seconds):
    await asyncio.sleep(seconds)
async def main():
    print(flush=True)
    await asyncio.gather(*(nap(seconds) for seconds in %s))
asyncio.run(main())
"""


@pytest.mark.parametrize("naps, others", [((1000, 2000, 3000), True), ((1000,), False)])
def test_sleeps_of_different_lengths(naps, others):
    with support.Program([NEWEST.exe, "-c", NAPS % (naps,)], env=NEWEST.env) as program:
        program.line()
        said = []

        def sleeps():
            done = subprocess.run([support.BINARY, str(program.pid), "dump"], stdout=subprocess.PIPE, check=False)
            said[:] = re.findall(r"  (?:3 tasks|task \S+)  in sleep\(1000\), .* left( and other waits)?(?:  \(|\n)", done.stdout.decode())
            return said
        wait_until(sleeps)
        assert said == [" and other waits" if others else ""]
