# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of examples/, started and asked as their pages say."""
import functools
import json
import os
import subprocess
from pathlib import Path

import pytest

import support
import training
from environment import OK

EXAMPLES = support.ROOT / "examples"
# Lightning and transformers are seldom there for the system's Python.
PYTHON = os.environ.get("PROBING_TORCH_PYTHON", training.PYTHON)
HOOK = "import probing_startup\nprobing_startup.start()\n"


@functools.lru_cache(maxsize=None)
def imports(name):
    return not subprocess.run([PYTHON, "-c", "import " + name], stderr=subprocess.DEVNULL, check=False).returncode


@pytest.fixture
def shell(tmp_path):
    """shell(line) starts it in the source folder, where `python` is one with torch and with probing's start-up hook."""
    if PYTHON == training.PYTHON:
        training.check()
    (tmp_path / "python").write_text("#!/bin/sh\nexec '%s' \"$@\"\n" % PYTHON)
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    paths = [str(tmp_path), str(support.ROOT / "package"), os.environ.get("PYTHONPATH")]
    env = dict(os.environ, PATH="%s:%s" % (tmp_path, os.environ["PATH"]), PYTHONPATH=":".join(filter(None, paths)),
               PROBING_AGENT=str(Path(support.BINARY).with_name("libprobing-agent.so")), PYTHONDONTWRITEBYTECODE="1")

    def start(line, by=support.Program, **options):
        return by(["sh", "-c", line], env=env, cwd=support.ROOT, **options)

    return start


def rows(probing, pid, sql):
    done = probing(pid, "query", "-f", "json", sql)
    assert done.code == OK, done
    return json.loads(done.out)


def test_imagenet(shell, probing):
    line = 'PROBE_TORCH_EXPRS="loss@train,acc1@train" PROBE=1 exec python examples/imagenet.py'
    with shell(line) as program:
        assert program.line(timeout=400) == "training in process %d" % program.pid
        for _ in range(2):
            assert program.line(timeout=400).startswith("epoch 0 [")
        found = rows(probing, program.pid, "SELECT name, avg(number) AS mean FROM python.variables GROUP BY name")
        means = {row["name"]: row["mean"] for row in found}
        assert set(means) == {"loss@train", "acc1@train"} and 0 < means["loss@train"] < 10
        shown = probing(program.pid, "print", "loss@train")
        assert shown.code == OK and "tensor(" in shown.out, shown


def test_plain_loop(shell, probing):
    with shell("exec python examples/test_probing.py") as program:
        assert program.line(timeout=400) == "training in process %d" % program.pid
        assert program.line(timeout=400).startswith("step 100: loss ")
        done = probing(program.pid, "inject")
        assert done.code == OK and "steps of torch are recorded" in done.err, done
        assert rows(probing, program.pid, training.TYPED[0])


@pytest.mark.parametrize("line, says", [
    ("python examples/test_probing.py --steps 3", "training in process"),
    ("python examples/imagenet.py --steps 3", "epoch 0 [0/100] loss"),
    ("python examples/ddp.py --steps 3", "rank 1 of 2 in process"),
    ("python examples/with_lightning.py --steps 3", "training in process"),
    ("python examples/with_trainer.py --steps 3", "train_runtime")])
def test_all_end(line, says, shell):
    for name, package in ("lightning", "lightning"), ("trainer", "transformers"):
        if name in line and not imports(package):
            pytest.skip("%s is not installed for a Python with torch" % package)
    done = shell(line, subprocess.run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                 timeout=400, check=False)
    assert done.returncode == 0 and says in done.stdout.decode(), done.stdout.decode()


def test_the_page_names_all():
    page = (EXAMPLES / "README.md").read_text()
    assert all(path.name in page for path in EXAMPLES.glob("*.py")), sorted(EXAMPLES.glob("*.py"))
