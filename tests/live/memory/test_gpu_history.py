# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing memory --snapshot-gpu` on a made-up history: what is recorded, written and said of it, and refusals."""
import contextlib
import json
import os
import pickle
import signal
import subprocess

import pytest

import support
import training
from environment import OK, UNSUPPORTED, USAGE, wait_until

MIB = 1 << 20


@contextlib.contextmanager
def allocator(*mode):
    with training.SYSTEM.start("allocator.py", *mode) as program:
        assert program.line(timeout=400) == "ready"
        yield program


def ask(program, word):
    program.send(word.encode() + b"\n")
    return json.loads(program.line(timeout=100))


@pytest.fixture(scope="module")
def shared():
    with allocator() as program:
        yield program


ON, OFF = ["all", "alloc", "python", 50000], [None, "all", "all", None]


def test_what_is_recorded_and_written(probing, shared, tmp_path):
    path, before = tmp_path / "gpu.pickle", len(ask(shared, "calls"))
    done = probing(shared.pid, "memory", "--snapshot-gpu", path, "-d", "0.1s")
    assert done.code == OK, done
    assert ask(shared, "calls")[before:] == [ON, OFF]
    found = pickle.loads(path.read_bytes())
    assert json.loads(json.dumps(found)) == ask(shared, "snapshot"), "it is torch's, unchanged"
    lines = done.out.splitlines()
    assert lines[0] == "%s: 7 events, for https://pytorch.org/memory_viz" % path
    assert [line.split() for line in lines[lines.index("") + 1:]] == [each.split() for each in (
        "GPU 0: at most 84.0 MiB at once, in 4 blocks", "bytes blocks allocated in", "40.0 MiB 1 allocated before",
        "20.0 MiB 1 forward (/src/model.py:31)", "16.0 MiB 1 no line of Python: backward, or C++",
        "8.0 MiB 1 loss?of (/src/model.py:55)")], done.out


def test_json(probing, shared, tmp_path):
    done = probing(shared.pid, "memory", "--snapshot-gpu", tmp_path / "x", "-d", "0.1s", "--json")
    found = json.loads(done.out)
    assert found["events"] == 7 and not found["events_lost"] and not found["records_itself"]
    [gpu] = found["gpus"]
    assert (gpu["gpu"], gpu["peak_bytes"], gpu["peak_blocks"]) == (0, 84 * MIB, 4)
    assert gpu["places"][1] == {"bytes": 20 * MIB, "blocks": 1, "function": "forward", "file": "/src/model.py", "lineno": 31}


def test_tools_of_torch_read_it(probing, shared, tmp_path):
    """torch's own memory_viz, where it knows histories."""
    others = [(each.exe, dict(os.environ, **each.env)) for each in training.TORCHES if each.there]
    others += [(each, None) for each in filter(None, [os.environ.get("PROBING_TORCH_PYTHON")])]
    exe, env = next(((exe, env) for exe, env in others if not subprocess.run(
        [exe, "-c", "from torch.cuda._memory_viz import trace_plot"], env=env, stderr=subprocess.DEVNULL,
        check=False).returncode), (None, None))
    if not exe:
        pytest.skip("torch of this machine has no memory_viz of histories")
    path = tmp_path / "gpu.pickle"
    assert probing(shared.pid, "memory", "--snapshot-gpu", path, "-d", "0.1s").code == OK
    code = "import pickle, sys; from torch.cuda import _memory_viz as v; found = pickle.load(open(sys.argv[1], 'rb')); " \
        "print(v.segsum(found), v.trace(found)); v.trace_plot(found)"
    said = subprocess.run([exe, "-c", code, path], env=env, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "total_allocated: 26.0MiB" in said and "7 entries" in said, said


def test_ctrl_c_shows_what_there_is(probing, shared, tmp_path):
    path, before = tmp_path / "gpu.pickle", len(ask(shared, "calls"))
    command = subprocess.Popen([support.BINARY, str(shared.pid), "memory", "--snapshot-gpu", path, "-d", "3600s"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: ask(shared, "calls")[before:] == [ON])
    done = probing(shared.pid, "memory", "--snapshot-gpu", tmp_path / "other", "-d", "0.1s")
    assert done.code == UNSUPPORTED and "another client records it" in done.err and not (tmp_path / "other").exists(), done
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=100)
    assert command.returncode == OK and b"84.0 MiB at once" in out and path.exists(), (out, err)
    assert ask(shared, "calls")[before:] == [ON, OFF]


def test_a_program_that_records_itself_goes_on(probing, tmp_path):
    with allocator("itself") as program:
        done = probing(program.pid, "memory", "--snapshot-gpu", tmp_path / "x", "-d", "0.1s")
        assert done.code == OK and "the program records its history itself, which goes on\n" in done.out, done
        assert ask(program, "calls") == []


def test_a_recorder_of_before(probing, tmp_path):
    with allocator("old") as program:
        assert probing(program.pid, "memory", "--snapshot-gpu", tmp_path / "x", "-d", "0.1s").code == OK
        assert ask(program, "calls") == [[True, True, 50000, True], [False, True, 1, False]]


def test_another_allocator_is_refused(probing, tmp_path):
    with allocator("other") as program:
        done = probing(program.pid, "memory", "--snapshot-gpu", tmp_path / "x")
        assert done.code == UNSUPPORTED and "managed by cudaMallocAsync, which has no history" in done.err, done
        assert not list(tmp_path.iterdir()) and ask(program, "calls") == []


def test_without_a_gpu(probing, tmp_path):
    with training.SYSTEM.start("leaks.py") as program:
        assert program.line(timeout=400) == "ready"
        done = probing(program.pid, "memory", "--snapshot-gpu", tmp_path / "x")
        assert done.code == UNSUPPORTED and not list(tmp_path.iterdir()), done
        assert "was built without CUDA" in done.err or "has not used a GPU so far" in done.err, done


def test_without_torch(probing, tmp_path):
    interpreter = support.one_per_version((3, 8))[-1]
    with support.Program([interpreter.exe, "-c", "print(flush=True); input()"], env=interpreter.env) as program:
        program.line()
        done = probing(program.pid, "memory", "--snapshot-gpu", tmp_path / "x")
        assert done.code == UNSUPPORTED and "torch is not imported" in done.err and not list(tmp_path.iterdir()), done
        done = probing(program.pid, "memory", "-d", "1s")
        assert done.code == USAGE and "--duration is for --snapshot-gpu" in done.err
