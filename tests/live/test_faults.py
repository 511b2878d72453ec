# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix of injection: heap, loader and registers. Programs that notice the slightest
harm, and none is done.

Each cell of test_faults*.py is run $PROBING_FAULT_RUNS times: ten in `make check`, 200 in
`make check-faults`, which also writes the counts into docs/faults.md."""
import pytest

from faults import Checked, run_cell


@pytest.mark.parametrize("kind, threads", [
    ("heap", 1), ("heap", 5), ("malloc", 1), ("malloc", 5), ("dlopen", 1), ("dlopen", 3),
    ("threads", 1), ("threads", 3)])
def test_heap_and_loader(build, kind, threads):
    program = build.program("fault_heap")
    run_cell("%s, %d thread%s" % (kind, threads, "s" * (threads > 1)), build,
             lambda: Checked(program, kind, threads), threads=kind != "threads").assert_loaded()


def has(flag):
    with open("/proc/cpuinfo", encoding="ascii") as file:
        return flag in file.read().split()


@pytest.mark.parametrize("kind, flag", [("ymm", "avx"), ("zmm", "avx512f")])
def test_registers(build, kind, flag):
    if not has(flag):
        pytest.skip("this processor has no " + flag)
    program = build.program("fault_registers")
    run_cell("registers: %s, MXCSR, red zone" % kind, build,
             lambda: Checked(program, kind)).assert_loaded()
