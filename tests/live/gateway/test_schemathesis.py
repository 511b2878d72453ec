# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that Schemathesis makes up from the description: none is a failure of the gateway, all that the description
allows are taken, and all else is refused."""
import os
import subprocess

import packages
from gateway_client import Gateway
from served_program import program  # noqa: F401 (a fixture)

# What a request says can be refused: SQL that is none, a process that is paused already, a gateway that is busy.
CONFIGURATION = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 503, 504]
"""
# They answer as long as somebody listens, or for the time that is asked for.
LASTS = "/(repl|pause|events|memory|flamegraph)$"


def test_made_up_requests(program, tmp_path):
    exe = packages.need("schemathesis")
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    with Gateway(program.pid, "--allow-write") as gateway:
        done = subprocess.run(
            [os.path.join(os.path.dirname(exe), "schemathesis"), "--config-file", tmp_path / "schemathesis.toml", "run",
             "http://%s/v1/openapi.json" % gateway.host, "-H", "Authorization: Bearer " + gateway.token, "--max-examples", "4",
             "--generation-deterministic", "--request-timeout", "60", "--suppress-health-check", "all", "--phases",
             "coverage,fuzzing", "--exclude-path-regex", LASTS],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path, check=False)
        text = done.stdout.decode()
        assert done.returncode == 0 and "generated" in text, text
        assert gateway.ask("/v1/targets").status == 200
