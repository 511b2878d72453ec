# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines as people type them, unchanged: each one works, or says that this version lacks the
feature."""
import os
import re
import shlex
import signal
import subprocess

import pytest

import pauses
import remote
import support
import training
from environment import FAILED, OK, USAGE, needs

# Works, and prints this.
WORKS = [
    ("probing --pid E inject", "the agent"),
    ("probing E inject", "the agent"),
    ("probing --pid E inject -c", "crash records of process"),
    ("probing --pid E inject -P", "is recorded in the background"),
    ("probing -t E inject", "the agent"),
    ("probing help debug", "Usage: probing [TARGET] debug [OPTIONS]"),
    ("probing -p E debug --dump", "Python 3"),
    ("probing -p E d -d", "Python 3"),
    ("probing debug -p E -d", "Python 3"),
    ("probing d -d -p E", "Python 3"),
    ("probing dump E", "Python 3"),
    ("probing E dump", "Python 3"),
    ("probing dump --pid E", "Python 3"),
    ("probing -t E backtrace", "Python 3"),
    ("probing E backtrace", "Python 3"),
    ("probing -p E perf --cc", "cost: "),
    ("probing E eval \"import threading; [print(f'{t.name}: {t.is_alive()}') for t in "
     "threading.enumerate()]\"", "MainThread: True"),
    ("probing E eval \"import torch; print(f'CUDA: {torch.cuda.is_available()}') "
     "if 'torch' in globals() else print('PyTorch not loaded')\"", None),
    ("probing E query \"SELECT func, file, lineno FROM python.backtrace ORDER BY depth LIMIT 5\"",
     "lineno"),
    ("probing -t E memory", "Python objects: "),
    ("probing -t E config", "probing.sample_rate"),
    ("probing -t E config probing.sample_rate=0.05", "probing.sample_rate = 0.05"),
    ("probing -t E config probing.max_memory=1GB", "probing.max_memory = 1000000000"),
    ("probing E query \"SELECT name, value FROM information_schema.df_settings LIMIT 5\"", "value"),
]

# Of programs that record: see package/test_trained.py, agent/test_torch_steps.py, memory/test_sites.py.
SQL_RECORDED = [
    "SELECT function_name, sum(allocated_bytes) as total_alloc FROM memory_allocations WHERE timestamp > now() - "
    "interval '1 hour' GROUP BY function_name ORDER BY total_alloc DESC",
    "SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics",
    *training.TYPED,
    "SELECT operation_name, avg(duration_ms), count(*) FROM profiling_data WHERE timestamp > now() - interval "
    "'5 minutes' GROUP BY operation_name ORDER BY avg(duration_ms) DESC",
    "SELECT epoch, avg(loss), min(loss), count(*) as steps FROM training_logs GROUP BY epoch ORDER BY epoch",
    "SELECT * FROM memory_usage WHERE timestamp > now() - interval '5 min'",
    "SELECT hour(timestamp), avg(memory_mb) FROM memory_usage GROUP BY hour(timestamp)",
]

# Nothing here reads these yet, and no help may promise them: starting a program with the agent in it.
VARIABLES_NOT_YET = ["PROBING", "PROBE", "PROBING_PORT", "PROBE_TORCH_EXPRS", "PROBING_SAMPLE_RATE",
                     "PROBING_RETENTION_DAYS"]

PSUTIL = ("probing E eval \"import os, psutil; proc = psutil.Process(); print(f'PID: {os.getpid()}, "
          "Memory: {proc.memory_info().rss/1024**2:.1f}MB')\"")
DEBIAN = "/usr/bin/python3"

# Words of other programs: the hint says where it is.
ELSEWHERE = [
    ("probing stack E", "there is no command 'stack'", "'probing PID dump'"),
    ("probing attach E", "there is no command 'attach'", "'probing PID dump'"),
    ("probing record -o x.svg --pid E", "'record' stores rows, and x.svg is a picture", "perf -o x.svg"),
    ("probing dmup E", "there is no command 'dmup'", "did you mean 'dump'?"),
    ("probing E dmup", "there is no command 'dmup'", "did you mean 'dump'?"),
    ("probing nosuch.snapshot bt", "there is no file 'nosuch.snapshot'", "no Python process has"),
]


def run(line, pid):
    """A shell runs the line, with the pid in the place of E."""
    shown = re.sub(r"\bE\b", str(pid), line)
    assert shown.startswith("probing ")
    return subprocess.run(["sh", "-c", "exec %s %s" % (shlex.quote(support.BINARY), shown[len("probing "):])],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, universal_newlines=True, check=False)


@pytest.fixture
def process(target, shared, newest):
    return target("counting.py", shared.path, "1")


@pytest.mark.parametrize("line, says", WORKS)
def test_works(line, says, process, probing):
    if "import torch" in line:
        assert probing(process.pid, "eval",
                       "import sys, types; t = sys.modules['torch'] = types.ModuleType('torch'); "
                       "t.cuda = types.SimpleNamespace(is_available=lambda: False)").code == OK
        says = "CUDA: False"
    done = run(line, process.pid)
    assert done.returncode == OK and says in done.stdout, done


@pytest.mark.parametrize("sql", SQL_RECORDED)
def test_tables_that_nothing_records(sql, process, probing):
    refused = probing(process.pid, "query", sql)
    assert refused.code == USAGE and not refused.out, refused
    assert "nothing records" in refused.err and re.search(r"probing\.|memory --sites", refused.err), refused


@pytest.mark.parametrize("variable", VARIABLES_NOT_YET)
def test_variables_not_yet(variable, probing):
    environment = probing("--help").out.split("Environment:")[1].split("\n\n")[0]
    assert not re.search(r"^  %s  " % variable, environment, re.M)
    assert not re.search(r"^\| `%s` " % variable, (support.ROOT / "docs/guide.md").read_text(), re.M)


@needs("psutil is not installed", DEBIAN, "-c", "import psutil")
def test_psutil():
    with support.Program([DEBIAN, "-c", "print('ready', flush=True); input()"]) as program:
        program.line()
        done = run(PSUTIL, program.pid)
        assert done.returncode == OK, done
        assert re.fullmatch(r"PID: %d, Memory: \d+\.\dMB\n" % program.pid, done.stdout), done


@pytest.mark.parametrize("line, says, hint", ELSEWHERE)
def test_elsewhere(line, says, hint, process):
    done = run(line, process.pid)
    assert done.returncode != OK and not done.stdout, done
    assert says in done.stderr and hint in done.stderr, done


@pytest.mark.parametrize("words", [["debug", "--pause", "--address", "127.0.0.1:0"],
                                   ["d", "-p", "-a", "127.0.0.1:0"]])
@pytest.mark.parametrize("named", ["-p", "-t", None])
def test_pauses(words, named, process, shared):
    before = ([named] if named else []) + [str(process.pid)]
    with subprocess.Popen([support.BINARY, *before, *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, env=dict(os.environ, PROBING_AUTH_TOKEN="x" * 20)) as pause:
        lines = [pause.stdout.readline().decode()]
        while lines[-1] and "remote    probing -t 127.0.0.1:" not in lines[-1]:
            lines.append(pause.stdout.readline().decode())
        assert lines[0].startswith("%d is paused" % process.pid) and lines[-1], lines
        pause.send_signal(signal.SIGINT)
        pause.communicate(timeout=60)
        assert pause.returncode == OK
    pauses.wait_until_runs(shared)


@pytest.mark.parametrize("options", [("-l", "127.0.0.1:0"), ("-b", "-a", "127.0.0.1:0")])
def test_serves(options, process):
    done = remote.run("--pid", process.pid, "inject", *options)
    try:
        assert done.returncode == OK and b"is served at 127.0.0.1:" in done.stdout, done
    finally:
        for server in remote.servers(process.pid):
            os.kill(server, signal.SIGTERM)


def test_serves_already(process):
    with remote.Service(process.pid) as service:
        done = remote.run(process.pid, "inject", "-b", "-a", service.address)
        assert done.returncode == FAILED, done
        assert b"is served already, at " + service.address.encode() in done.stderr, done


def test_code_is_piped(process):
    with remote.Service(process.pid) as service:
        done = service.run("eval", stdin=b"6 * 7")
        assert (done.returncode, done.stdout) == (OK, b"42\n"), done
        done = service.run("eval")
        assert done.returncode == USAGE and b"no code given" in done.stderr, done


def test_help_names_each_form_of_a_target(probing):
    text = probing("--help").out
    for form in ("PID", "CORE", "SNAPSHOT", "NAME", "/REGEX/", "HOST:PORT", "ssh://HOST/TARGET", "SOCKET"):
        assert re.search("^  %s  " % re.escape(form), text, re.M), form


def test_make_test_is_make_check():
    database = subprocess.run(["make", "-n", "-p", "-q", "test"], cwd=support.ROOT, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    assert b"\ntest: check\n" in database
