# SPDX-License-Identifier: GPL-3.0-or-later
"""An agent in a program that does not trust its environment obeys no variable of ours; the hook is in
tests/live/package/test_startup.py."""
import json
import os
import re
import signal
import sys

import pytest

import support
from conftest import PROGRAMS
from environment import OK
from files_support import run

PACKAGE = str(support.ROOT / "package")
PYTHONS = support.one_per_version((3, 6), usable=lambda python: not {"PYTHONHOME", "LD_LIBRARY_PATH"} & (
    set(python.env) - set(os.environ)))
# A value for each variable of the agent that no process has by itself.
KEYS = re.findall(r'\{"(probing\.[\w.]+)",\s*"(\w+)",\s*(?:NULL|"(\w+)"),\s*PRB_CONFIG_(\w+)',
                  (support.ROOT / "agent/config_keys.h").read_text())
WATCHED = "open(%r, 'w').write('x')"
STEPS = """
import sys
sys.path.insert(0, %r)
import probing
print("ready", flush=True)
for line in sys.stdin:
    table = probing.table("mine", {"number": int})
    table.append(1)
    probing.step()
    print("stepped", flush=True)
""" % PACKAGE


def other_user():
    os.setresuid(65534, 0, 0)


def other_group():
    os.setresgid(65534, 0, 0)


WAYS = {"-I": None, "-E": None, "uid": other_user, "gid": other_group}
OBEYING = {"as usual": None}


def variables(folder):
    values = {"NUMBER": "0.125", "SIZE": "123MiB", "TEXT": WATCHED % str(folder / "watched")}
    ours = {name: values[kind] for _, first, also, kind in KEYS for name in (first, also) if name}
    assert len(ours) > 6, KEYS
    return dict(ours, PROBING_DATA_DIR=str(folder / "data"), PROBING_AGENT=str(folder / "no-such.so"),
                PROBING="0", PROBE="0")


def started(python, way, script, env, prepare):
    if prepare and os.geteuid():
        pytest.skip("only root can change what it runs as")
    clean = {name: value for name, value in os.environ.items() if not re.match("PROB|PYTHON", name)}
    process = support.Program([python, *([way] if way.startswith("-") else []), "-c", script],
                              env={**clean, **env}, preexec_fn=prepare)
    assert process.line() == "ready"
    return process


def settings(process):
    done = run(process.pid, "config", "--json")
    assert done.returncode == OK, done
    return done.stdout




@pytest.mark.parametrize("way", [*WAYS, *OBEYING])
@pytest.mark.parametrize("python", PYTHONS, ids=repr)
def test_the_agent_obeys_no_variable(tmp_path, python, way):
    """Neither its settings, nor paths of files, nor code run at each step; normally it obeys all of them."""
    ours, prepare = variables(tmp_path), {**WAYS, **OBEYING}[way]
    if way in OBEYING:
        del ours["PROBING_AGENT"], ours["PROBING"], ours["PROBE"]
    with started(python.exe, way, STEPS, ours, prepare) as process:
        assert run(process.pid, "eval", "1").returncode == OK
        told = settings(process)
        process.send(b"\n")
        assert process.line() == "stepped"
        rows = run(process.pid, "query", "-f", "json", "SELECT count(*) AS n FROM user.mine")
        assert json.loads(rows.stdout) == [{"n": 1}], rows
        assert run(process.pid, "config", "probing.sample_rate=0.5").returncode == OK
        assert b"0.5" in settings(process)
    with started(python.exe, way, STEPS, {}, prepare) as process:
        assert run(process.pid, "eval", "1").returncode == OK
        assert (settings(process) == told) == (way in WAYS)
    assert (sorted(path.name for path in tmp_path.iterdir()) == []) == (way in WAYS), list(tmp_path.iterdir())


@pytest.mark.parametrize("way", [*WAYS, *OBEYING])
def test_crash_records_go_where_no_variable_says(tmp_path, way):
    """They go where the injecting user says."""
    script, prepare = (PROGRAMS / "crashing.py").read_text(), {**WAYS, **OBEYING}[way]
    env = {"PROBING_DATA_DIR": str(tmp_path / "data"), "XDG_STATE_HOME": str(tmp_path / "state")}
    for words in ([], ["-D", "crash.folder=%s" % (tmp_path / "named")]):
        with started(sys.executable, way, script, env, prepare) as process:
            done = run(process.pid, "inject", "-c", *words)
            assert done.returncode == OK, done
            process.send(b"main SIGABRT\n")
            assert process.line() == "dying" and process.wait()[0] == -signal.SIGABRT
    assert list((tmp_path / "named").glob("crash-*.core"))
    assert list((tmp_path / "data").glob("crashes/crash-*.core")) == [] or way in OBEYING
    assert (tmp_path / "data").exists() == (way in OBEYING)
