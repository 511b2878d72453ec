# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel that spins on the GPU of a worker: by the driver's library, whose place a stand-in takes."""
import json
import subprocess

import pytest

import support
from environment import wait_until
from test_server import probing, server

SPINS = "GPU 0 is 100 % busy at 121 W of 700 W and its memory 0 %: a kernel spins, and the Python frame is its victim"


@pytest.mark.parametrize("state, who", [("spin", "worker"), ("single", "core")])
def test_a_kernel_spins(tmp_path, state, who):
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libnvidia-ml.so.1", support.HERE / "programs" / "nvidia_ml.c"], check=True)
    with server(state) as pids:
        pid = pids["workers"][1] if who == "worker" else pids["core"]

        def sentence(**env):
            found = json.loads(probing("server", pids["core"], "--json", env=dict(env, LD_LIBRARY_PATH=str(tmp_path)))[1])["findings"]
            return found[0]["sentence"] if found else ""
        wait_until(lambda: SPINS in sentence(GPU_SPINS="1", GPU_PID=str(pid)))
        # A GPU that works, or one of another process, says nothing of this one.
        assert sentence(GPU_PID=str(pid)) and "spins" not in sentence(GPU_PID=str(pid))
        assert "spins" not in sentence(GPU_SPINS="1", GPU_PID="1")
