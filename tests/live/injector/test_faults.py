# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix of injection: heap, loader and registers. Programs that notice the slightest
harm, and none is done.

Each cell of test_faults*.py is run $PROBING_FAULT_RUNS times: ten in `make check-all`, 200 in
`make check-faults`, which also writes the counts into docs/faults.tsv."""
import pytest

import faults
from faults import Checked, run_cell


@pytest.mark.parametrize("kind, threads", [
    ("heap", 1), ("heap", 5), ("malloc", 1), ("malloc", 5), ("dlopen", 1), ("dlopen", 3),
    ("threads", 1), ("threads", 3), ("clocks", 1), ("clocks", 3)])
def test_heap_and_loader(build, kind, threads):
    program = build.program("fault_heap")
    cell = run_cell("%s, %d thread%s" % (kind, threads, "s" * (threads > 1)), build,
                    lambda: Checked(program, kind, threads), threads=kind != "threads")
    # Without breakpoints a thread that is in the loader nearly always is not met outside of it.
    if kind != "dlopen" or not faults.AARCH64:
        cell.assert_loaded()


@pytest.mark.parametrize("kind, flag, length", faults.REGISTERS)
def test_registers(build, kind, flag, length):
    if not faults.processor_has(flag):
        pytest.skip("this processor has no " + flag)
    program = build.program("fault_registers")
    run_cell("registers: %s%s, %s" % (kind, " " * bool(length) + length, faults.REGISTERS_TOO),
             build, lambda: Checked(program, kind, length)).assert_loaded()
