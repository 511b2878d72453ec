# SPDX-License-Identifier: GPL-3.0-or-later
"""Started programs: names chosen by others become neither options nor programs."""
import os
import re
import shutil
import struct
import subprocess

import pytest

import support
from environment import FAILED, OK, USAGE

OURS = None  # words of this program, and numbers
TYPED = None  # the command line that the user typed behind it, whole
# The code that starts programs, and the tests of names from others in its words.
STARTERS = {
    "cli/commands/debuggers/start_debugger.c": ["attacks/test_started_programs.py::test_a_core_whose_program_is_an_option"],
    "cli/commands/launch.c": TYPED,
    "cli/commands/node.c": OURS,
    "cli/commands/run/program.c": TYPED,
    "cli/commands/script/start_python.c": TYPED,
    "cli/commands/serve/open_browser.c": OURS,
    "clickhouse/ship_metrics.c": OURS,
    "cluster/reach/gather.c": ["attacks/test_started_programs.py::test_hosts_that_are_options",
                         "attacks/test_started_programs.py::test_pods_and_nodes_that_are_options"],
    "gateway/targets/child.c": ["attacks/test_gateway.py::test_words_of_a_command_line",
                        "gateway/test_job_of_gateway.py::test_what_a_request_names_is_a_target",
                        "gateway/test_mcp.py::test_what_cannot_be_done"],
    "gateway/metrics/post.c": OURS,
    "cli/commands/perf/record/program.c": TYPED,
    "remote/ssh.c": ["attacks/test_started_programs.py::test_hosts_that_are_options"],
    "remote/serve/child.c": ["remote/test_remote.py::test_refused"],
    "cli/commands/top/stack.c": OURS,
}
STARTS = re.compile(r"\bprb_(start_(become\w*|child)|program_start)\(")
# A program that says which words it got, and succeeds.
SAYS = '#!/bin/sh\nfor word; do printf "%%s\\n" "$word"; done >>"%s"\n'
OPTION = "--eval-command=shell touch %s"
# By e_machine: the size of struct elf_prstatus.
PRSTATUS = {62: 336, 183: 392}
AT_PHDR, AT_EXECFN, NT_PRSTATUS, NT_AUXV, PT_LOAD, PT_NOTE = 3, 31, 1, 6, 1, 4


def test_all_are_listed():
    found = {str(path.relative_to(support.ROOT)) for path in support.ROOT.glob("*/**/*.c")
             if STARTS.search(path.read_text()) and path.relative_to(support.ROOT).parts[0] not in ("build", "tests")}
    assert found - {"command/start.c", "command/program.c"} == set(STARTERS), "a program is started without a row here"
    for tests in filter(None, STARTERS.values()):
        for test in tests:
            file, _, name = test.partition("::")
            assert re.search(r"^def %s\(" % name, (support.ROOT / "tests/live" / file).read_text(), re.M), test


def note(kind, data):
    return struct.pack("<III8s", 5, len(data), kind, b"CORE") + data + bytes(-len(data) % 4)


def write_core(path, program):
    """A core file of one thread, whose program was called by that name."""
    machine = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
    text = program.encode() + bytes(1)
    address = 0x7ffd00000000
    status = bytearray(PRSTATUS[machine])
    struct.pack_into("<I", status, 32, 4242)
    notes = note(NT_PRSTATUS, bytes(status)) + note(NT_AUXV, struct.pack("<4Q", AT_EXECFN, address, 0, 0))
    start = 64 + 2 * 56
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    memory = text + bytes(-len(text) % 4096)
    path.write_bytes(head + struct.pack("<IIQQQQQQ", PT_NOTE, 4, start, 0, 0, len(notes), len(notes), 4)
                     + struct.pack("<IIQQQQQQ", PT_LOAD, 6, start + len(notes), address, 0, len(memory), len(memory), 1)
                     + notes + memory)
    return path


def stand_in(folder, name):
    """Puts a program of that name first in PATH; its arguments are in the file."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(SAYS % (folder / "words"))
    (folder / name).chmod(0o755)
    return dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"])), folder / "words"


def run(*words, env=None, cwd=None):
    return subprocess.run([support.BINARY, *map(str, words)], env=env, cwd=cwd, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)


@pytest.mark.parametrize("debugger", ["gdb", "lldb"])
def test_a_core_whose_program_is_an_option(debugger, tmp_path):
    """Nor a file in the current folder, which the author of the core may have put there."""
    made = tmp_path / "made"
    (tmp_path / "beside").write_text("")
    for program in (OPTION % made, "-x", "--args", "beside", "./beside", "/no/such/program", "/dev/null", str(tmp_path)):
        core = write_core(tmp_path / "core", program)
        env, words = stand_in(tmp_path / "bin", debugger)
        done = run(debugger, core, env=env, cwd=tmp_path)
        assert done.returncode == OK, done
        given = words.read_text().splitlines()
        assert given[given.index("-c"):] == ["-c", str(core)], (program, given)
        words.unlink()
        if shutil.which(debugger):
            run(debugger, core, cwd=tmp_path)
            assert not made.exists(), program


@pytest.mark.parametrize("debugger", ["gdb", "lldb"])
def test_a_core_whose_program_is_a_file(debugger, tmp_path):
    env, words = stand_in(tmp_path / "bin", debugger)
    program = os.path.realpath("/bin/sh")
    core = write_core(tmp_path / "core of sh", program)
    (tmp_path / "-x").symlink_to(core)
    for name in (core.name, "./-x"):
        assert run(debugger, name, env=env, cwd=tmp_path).returncode == OK
        assert words.read_text().splitlines()[-3:] == ["-c", str(core), program]


@pytest.mark.parametrize("name", ["-oProxyCommand=touch made", "-F/etc/passwd", "--"])
def test_hosts_that_are_options(name, tmp_path):
    env, words = stand_in(tmp_path / "bin", "ssh")
    (tmp_path / "hosts").write_text(name + "\n")
    assert run("ssh://%s/1" % name.replace(" ", "%20"), "dump", env=env, cwd=tmp_path).returncode == USAGE
    for way in ("--hosts=" + name, "--hostfile=%s" % (tmp_path / "hosts")):
        done = run("cluster", "nodes", way, env=env, cwd=tmp_path)
        assert done.returncode in (USAGE, FAILED), done
    # Those that are accepted as names of hosts are no options.
    for line in words.read_text().splitlines() if words.exists() else []:
        assert not line.startswith("-") or line in ("-T", "-oLogLevel=ERROR", "-oBatchMode=yes", "-oConnectTimeout=10", "--")


def test_pods_and_nodes_that_are_options(tmp_path):
    """Kubernetes' and Slurm's names of the job's hosts."""
    env, words = stand_in(tmp_path / "bin", "kubectl")
    program = tmp_path / "bin" / "kubectl"
    program.write_text(program.read_text() + 'echo pod/--kubeconfig=/tmp/x\necho pod/-f\n')
    assert run("cluster", "nodes", "--kubernetes", "-f/etc/passwd", env=env).returncode == USAGE
    assert run("cluster", "nodes", "--kubernetes", "app=x", env=env).returncode == FAILED
    assert words.read_text().splitlines() == [
        "get", "pods", "--output=json", "--selector=app=x"]
    env, words = stand_in(tmp_path / "slurm", "srun")
    stand_in(tmp_path / "slurm", "squeue")
    (tmp_path / "slurm" / "squeue").write_text("#!/bin/sh\necho --export=x,-x\n")
    run("cluster", "nodes", "--slurm", "4711", env=env)
    for line in words.read_text().splitlines() if words.exists() else []:
        assert line not in ("--export=x", "-x"), words.read_text()


@pytest.mark.parametrize("name, words", [
    ("ssh", ["ssh://node/1", "dump"]), ("gdb", ["gdb"]), ("lldb", ["lldb"]), ("python3", ["-x", "slow-queries"]),
    ("probing-thing", ["thing"])])
@pytest.mark.parametrize("folder", [".", "", "bin"])
def test_a_program_in_the_folder_that_we_stand_in(name, words, folder, tmp_path):
    """PATH may have a relative folder, which means one in the current folder."""
    stand_in(tmp_path / "bin", name)
    shutil.copy(tmp_path / "bin" / name, tmp_path)
    env = dict(os.environ, PATH=folder + ":/no/such/folder", HOME=str(tmp_path))
    env.pop("PYTHON", None)
    run(*words, env=env, cwd=tmp_path)
    assert not (tmp_path / "bin" / "words").exists()
