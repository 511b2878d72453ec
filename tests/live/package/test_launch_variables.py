# SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable that a start with the agent obeys: by PROBING=1 and by `probing launch`, with the same effect."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import support
from terminal import environment

PACKAGE = support.ROOT / "package"
AGENT = Path(support.BINARY).resolve().parent / "libprobing-agent.so"
TOKEN = "a-token-for-the-tests"
HOOK = "import probing_startup; probing_startup.start()\n"
# What the program is afterwards, as far as a variable can change it; addresses are left out.
OBSERVED = r"""
import json, os, re, subprocess, sys
def probing(*words):
    done = subprocess.run([%r, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().strip()
me = str(os.getpid())
settings = {one["key"]: one["value"] for one in json.loads(probing(me, "config", "--json"))}
served = re.search("served_at *([0-9.:]+)", probing(me, "agent"))
with open("/proc/self/status") as file:
    caught = int(re.search("SigCgt:\t(\\w+)", file.read()).group(1), 16)
with open("/proc/self/maps") as file:
    agents = set(re.findall(r"\S*libprobing-agent\S*", file.read()))
left = sorted(name for name in os.environ if name.startswith("PROBING_PORT"))
sys.path.insert(0, %r)
import probing as package
package.event("observed")
print(json.dumps({
    "settings": settings, "agents": sorted(agents), "crashes": bool(caught >> 10 & 1), "left": left,
    "waits for torch": any(type(finder).__name__ == "Later" for finder in sys.meta_path),
    "served": served and probing("-t", served.group(1), "eval", "6 * 7"),
    "rings": os.path.isdir(%r) and bool(os.listdir(%r))}))
"""
VALUES = {
    "PROBING_MAX_MEMORY": "2M", "PROBING_MEMORY_INTERVAL": "9", "PROBING_RETENTION_DAYS": "3", "PROBING_SAMPLE_RATE": "0.5",
    "PROBING_TORCH_PROFILING": "on", "PROBING_TORCH_NAN": "1", "PROBING_WATCH": "loss@train", "PROBE_TORCH_EXPRS": "loss@train",
    "PROBING_PORT": "0", "PROBING_AUTH_TOKEN": TOKEN, "PROBING_CRASH": "1", "PROBING_DATA_DIR": None, "PROBING_AGENT": None,
}
# They say whether there is an agent, which is what launch is for; or how the wheel's hook starts it.
OF_THE_HOOK = {"PROBING", "PROBE", "PROBING_HOOK"}
SOME = support.one_per_version(first=(3, 6))


def test_all_are_here():
    """All that the pages name."""
    named = set()
    for page in ("configuration.md", "start-up.md"):
        named |= set(re.findall(r"`(PROB[A-Z_]+)\b", (support.ROOT / "docs" / page).read_text(encoding="utf-8")))
    assert named == set(VALUES) | OF_THE_HOOK


def observe(python, way, folder, variables):
    code = OBSERVED % (support.BINARY, str(PACKAGE), *[str(folder / "rings")] * 2)
    ours = {"PROBING": "1", "PYTHONPATH": str(PACKAGE), "PROBING_AGENT": str(AGENT)} if way == "hook" else {}
    words = [python.exe, "-c", HOOK + code] if way == "hook" else \
        [support.BINARY, "launch", "--", python.exe, "-c", code]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          env=environment(**{**python.env, **ours, **variables}), check=False)
    assert done.returncode == 0, done
    return json.loads(done.stdout.decode()), done.stderr.decode()


@pytest.mark.parametrize("python", SOME, ids=repr)
@pytest.mark.parametrize("variable", VALUES)
def test_both_ways(python, variable, tmp_path):
    # One is of use with the other alone.
    others = {"PROBING_PORT": {"PROBING_AUTH_TOKEN": TOKEN}, "PROBING_AUTH_TOKEN": {"PROBING_PORT": "0"}}.get(variable, {})
    value = shutil.copy(str(AGENT), str(tmp_path)) if variable == "PROBING_AGENT" else VALUES[variable]
    seen = {}
    for way in ("hook", "launch"):
        folder = tmp_path / way
        for name in ("data", "rings"):
            os.makedirs(str(folder / name), 0o700)
        without = {"PROBING_DATA_DIR": str(folder / "data"), **others}
        given = {**without, variable: str(folder / "rings") if variable == "PROBING_DATA_DIR" else value}
        before, seen[way] = observe(python, way, folder, without), observe(python, way, folder, given)
        assert seen[way] != before, (way, before)
    assert seen["launch"][0] == seen["hook"][0]
