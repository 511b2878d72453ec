# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing dap` driven by a client library that others wrote: the flows that debugpy's users have."""
import json
import subprocess

import pytest

import packages
import support
from test_debug_adapter import listening
from test_debug_prompt import GIL, LINES, PROGRAM, clean, driven  # noqa: F401 (fixtures)

CLIENT = support.HERE / "programs" / "dap_client.py"


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_flows(interpreter, driven, shared, clean):
    python = packages.need("dap")
    process = driven(interpreter)
    command, launch = listening("--listen=127.0.0.1:0", "--within=30s")
    try:
        done = subprocess.run(
            [python, "-I", CLIENT, str(launch["debugServer"]), str(process.pid), str(PROGRAM), json.dumps(LINES),
             "exceptions" if interpreter.version >= (3, 12) else "none"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=300, check=False)
    finally:
        command.kill()
        command.communicate()
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout
    clean(interpreter, process.pid, shared)
