# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions of real debuggers with our plugin, and the command's output for the same target."""

import contextlib
import glob
import json
import os
import re
import select
import shutil
import subprocess
import sys

import own_gdb
import pytest
import support
import tables

PROGRAMS = support.HERE / "programs"
PLUGIN = support.ROOT / "gdbplugin"
# Rows that do not depend on the reader; values that differ while a debugger holds a thread are left out.
QUERIES = {
    "stacks": "SELECT tid, thread, depth, func, qualname, file, lineno, end_lineno, col, end_col, "
              "frame_type, module, ip, interpreter, _error FROM python.stacks "
              "ORDER BY tid, interpreter, depth",
    "locals": "SELECT tid, depth, func, name, type, value, kind FROM python.locals "
              "ORDER BY tid, depth, name",
    "threads": "SELECT tid, name, main, interpreter, frames, gil FROM python.threads ORDER BY tid",
    "native": "SELECT tid, depth, func, qualname, file, lineno, frame_type, offset "
              "FROM native.frames ORDER BY tid, interpreter, depth",
    "interpreters": "SELECT * FROM python.interpreters",
}
# Its words end at a space.
LOAD_IN_LLDB = "command script import " + str(PLUGIN / "probing_lldb.py").replace(" ", "\\ ")
needs_gdb = pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")
needs_gdbserver = pytest.mark.skipif(not shutil.which("gdbserver"),
                                     reason="gdbserver is not installed")
needs_lldb = pytest.mark.skipif(not shutil.which("lldb"), reason="lldb is not installed")


@pytest.fixture(params=tables.chosen_interpreters(), ids=repr)
def sleeping(request):
    """Threads that sleep for good, with calls and variables of many kinds."""
    with support.Target(request.param, PROGRAMS / "recorded.py") as process:
        process.line()
        support.wait_for_all_asleep(process.pid, len(support.thread_ids(process.pid)))
        process.interpreter = request.param
        yield process


@pytest.fixture
def known():
    return tables.known_interpreter()


@pytest.fixture
def sleeper(target, known):
    process = target("sleeper.py", interpreter=known)
    support.wait_for_sleep(process.pid, "pipe_read")
    return process


REFUSED = " cannot put back the registers of this processor, which has AMX"


class Session:
    """Exit status and output of a session."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self):
        out = "".join(line[:300] + "\n" for line in self.out.splitlines())
        return "exit code %d\n--- stdout\n%s--- stderr\n%s" % (self.code, out, self.err)

    def part(self, name):
        """The output after the mark of that name, up to the next mark."""
        found = re.search(r"^\[%s\]\n(.*?)(?=^\[\w+\]$|\Z)" % name, self.out, re.S | re.M)
        assert found, "%s is missing\n%r" % (name, self)
        return found.group(1)

    def rows(self, name):
        for line in self.part(name).splitlines():
            if line.startswith("[{") or line == "[]":
                return json.loads(line)
        raise AssertionError("no rows in %s\n%r" % (name, self))


# Caches that debuggers would otherwise make anew each time: bytecode of Python, indexes of debug information.
KEPT = support.ROOT / "build" / "kept-of-debuggers"
KEEPS = os.access(KEPT.parent, os.W_OK)


def environment():
    changed = {"PROBING_LIBRARY": os.path.join(os.path.dirname(support.BINARY), "libprobing.so"),
               "DEBUGINFOD_URLS": "", "LC_ALL": "C.UTF-8"}
    if KEEPS:
        changed.update(PYTHONPYCACHEPREFIX=str(KEPT), PYTHONDONTWRITEBYTECODE="")
    return dict(os.environ, **changed)


def gdb_alone(program="gdb"):
    """Words of a command: gdb without any settings of a user."""
    # LLDB has a cache too: with that of version 14 it misses existing variables.
    index = ["-iex", "set index-cache directory %s" % KEPT, "-iex", "set index-cache enabled on"]
    # Distributions' scripts for gdb, such as a printer of Python's objects, are not loaded. Before 12 the
    # other settings have other names.
    return [program, "-nx", "-q", "-iex", "set auto-load python-scripts off",
            *(index if KEEPS and program == "gdb" else [])]


def lldb_environment():
    """Debian's LLDB does not find its own module."""
    env = environment()
    places = sorted(glob.glob("/usr/lib/llvm-*/lib/python3*/dist-packages/lldb/__init__.py"))
    if places:
        env["PYTHONPATH"] = ":".join((os.path.dirname(os.path.dirname(places[-1])),
                                      "/usr/lib/python3/dist-packages"))
    return env


def others(kind):
    """Parameters of tests: the other versions of gdb or of lldb that are here."""
    done = subprocess.run([sys.executable, support.ROOT / "tests/tools/test-debuggers", "--json"],
                          stdout=subprocess.PIPE, check=True)
    found = [pytest.param(each, id=each["name"]) for each in json.loads(done.stdout.decode())
             if kind in each]
    return found or [pytest.param(None, marks=pytest.mark.skip(
        reason="no other version of %s is here: 'make test-debuggers' gets some" % kind))]


def gdb(*commands, arguments=(), env=None, program="gdb", cwd=None, may_refuse=False):
    """Runs gdb on a script: commands, among which (NAME,) is a mark in the output. Skips the test if this
    machine's gdb lacks the needed feature, unless it @may_refuse that."""
    lines = ["set confirm off", "source %s" % (PLUGIN / "probing-gdb.py")]
    for command in commands:
        # On a line of its own, whatever was printed before.
        lines.append("echo \\n[%s]\\n" % command[0] if isinstance(command, tuple) else command)
    script = subprocess.run(["mktemp"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    try:
        with open(script, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        session = Session(subprocess.run(
            [*gdb_alone(program), "-batch", "-x", script, *map(str, arguments)], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
            check=False, env=dict(environment(), **(env or {})), errors="surrogateescape", cwd=cwd))
    finally:
        os.unlink(script)
    if not may_refuse:
        skip_if_refused(session.out + session.err)
    return session


def skip_if_refused(said=REFUSED):
    """Skips a test that calls a function in a process, where gdb would spoil its registers."""
    for name in filter(shutil.which, ("gdb", "gdbserver")):
        if REFUSED in said and not own_gdb.writes_registers(shutil.which(name)):
            pytest.skip("this %s cannot write registers of this processor: 'make usable-gdb' gets another" % name)


def lldb(*commands, arguments=(), env=None, program=None, cwd=None):
    """The same with LLDB: this machine's, or another that knows where its module is."""
    lines = ["-O", LOAD_IN_LLDB]
    for command in commands:
        mark = isinstance(command, tuple)
        lines += ["-o", "script print('\\n[%s]')" % command[0] if mark else command]
    env = dict(environment() if program else lldb_environment(), **(env or {}))
    done = subprocess.run([program or "lldb", "--no-use-colors", "-x", "-b", *map(str, arguments), *lines],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=120, check=False, env=env, errors="surrogateescape", cwd=cwd)
    # LLDB echoes commands.
    done.stdout = "".join(line for line in done.stdout.splitlines(True)
                          if not line.startswith("(lldb) "))
    return Session(done)


def tried(debugger, command):
    """The command, of which an error is printed, too, and does not end the session."""
    if debugger is gdb:
        return "python\ntry:\n    gdb.execute(%r)\nexcept gdb.error as error:\n" \
               "    print(error)\nend" % command
    return "script result = lldb.SBCommandReturnObject(); lldb.debugger.GetCommandInterpreter()." \
           "HandleCommand(%r, result) and None; print(result.GetOutput() + result.GetError())" % command


def on_stderr(debugger, text):
    """A command that writes a line of its own there, between other output."""
    write = "import sys; sys.__stderr__.write(%r); sys.__stderr__.flush()" % (text + "\n")
    return ("python " if debugger is gdb else "script ") + write


both = pytest.mark.parametrize("start", [pytest.param(gdb, id="gdb", marks=needs_gdb),
                                         pytest.param(lldb, id="lldb", marks=needs_lldb)])


def attached(start, process, *commands):
    return start(*commands, arguments=["-p", process.pid])


def problem(session):
    """The line that a command failed with."""
    lines = [line for line in session.err.splitlines() if re.match(r"(error: )?probing: ", line)]
    lines = [line for line in lines if not line.endswith("ran on meanwhile")]
    assert len(lines) == 1 and "Traceback" not in session.err, session
    return lines[0].split("probing: ", 1)[1]


def printed(session, name):
    """A part, without the debugger's messages about threads and files."""
    lines = session.part(name).splitlines()
    return "\n".join(line for line in lines
                     if not re.match(r"\[(New|Inferior) |Reading |$|Process \d+ detached", line)).strip()


def query_commands():
    """The queries as commands, each behind a mark of its name."""
    commands = []
    for name, sql in QUERIES.items():
        commands += [(name,), "probing query -f json " + sql]
    return commands


def shell_rows(target, exe=None):
    """{name: rows} as the command has them from the same target."""
    found = {}
    for name, sql in QUERIES.items():
        done = subprocess.run([support.BINARY, "-t", str(target), *(["--exe", exe] if exe else []),
                               "query", "-f", "json", sql], stdout=subprocess.PIPE, check=True,
                              stdin=subprocess.DEVNULL)
        found[name] = json.loads(done.stdout.decode())
    return found


def has_function(pid, name):
    """True if a C function of the process has a name, which a stripped Python lacks."""
    sql = "SELECT count(*) AS n FROM native.symbols WHERE name = '%s'" % name
    done = subprocess.run([support.BINARY, str(pid), "query", "-f", "json", sql], stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout.decode())[0]["n"] > 0


# Columns that no row of a query lacks.
KEYS = {"stacks": ("tid", "thread", "depth", "func", "file", "lineno"),
        "locals": ("tid", "func", "name", "kind"), "threads": ("tid", "name", "main"),
        "native": ("tid", "depth", "frame_type"), "interpreters": ("interpreter", "version")}


def same_rows(session, expected, but=()):
    """The session's rows equal the command's, and some of them are complete."""
    for name, rows in expected.items():
        if name not in but:
            assert rows and all(row[key] is not None for row in rows for key in KEYS[name]), \
                (name, rows)
            for ours, theirs in zip(session.rows(name), rows):
                assert ours == theirs, (name, ours, theirs)
            assert len(session.rows(name)) == len(rows), name


@contextlib.contextmanager
def gdbserver(pid, program="gdbserver"):
    """A gdbserver that holds the process; its address."""
    with subprocess.Popen([program, "--once", "--attach", "localhost:0", str(pid)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as server:
        try:
            said = b""
            while not re.search(rb"Listening on port \d+\n", said):
                assert select.select([server.stderr], [], [], 30)[0], said
                chunk = os.read(server.stderr.fileno(), 4096)
                assert chunk, said
                said += chunk
            yield "localhost:%s" % re.search(rb"port (\d+)", said).group(1).decode()
        finally:
            server.kill()


WAYS = ("attached", "core", "gdbserver")


@contextlib.contextmanager
def opened(debugger, way, process, folder):
    """A function that runs @debugger (gdb or lldb) on the process, or on its core."""
    remote = "target remote " if debugger is gdb else "gdb-remote "
    exe = os.readlink("/proc/%d/exe" % process.pid)
    if way == "attached":
        yield lambda *commands: debugger(*commands, arguments=["-p", process.pid])
    elif way == "core":
        core = tables.core_of(process.pid, folder)
        arguments = [exe, core] if debugger is gdb else ["-c", core, exe]
        yield lambda *commands: debugger(*commands, arguments=arguments)
    elif not shutil.which("gdbserver"):
        pytest.skip("gdbserver is not installed")
    else:
        with gdbserver(process.pid) as address:
            yield lambda *commands: debugger(remote + address, *commands, arguments=[exe])


def frames_of(text):
    """[(function, place)] of the numbered frames in a backtrace, each as often as it says."""
    found = []
    for line in text.splitlines():
        match = re.match(r"[* ] #(\d+) +(.*?)  +(.*?)(?:   \((\d+) calls deep\))?$", line)
        if match:
            assert int(match.group(1)) == len(found), text
            found += [(match.group(2), match.group(3))] * int(match.group(4) or 1)
    return found


def answers(session, name):
    """The last line of a part: a debugger may print messages about threads before."""
    return session.part(name).strip().splitlines()[-1]


def shell(process, code):
    """The output of the command's own eval, which needs a loaded agent."""
    return subprocess.run([support.BINARY, "-p", str(process.pid), "eval", "--no-inject", code],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False).stdout


def says_what_the_command_says(run, name, process, saved):
    """@run, of the debugger of that name, has all our commands in a process, which lives on."""
    expected = shell_rows(process.pid)
    session = run(
        *query_commands(), ("info",), "probing info", ("tables",), "probing tables",
        "probing snapshot %s" % saved, ("eval",), "probing eval print('shown'); 6 * 7", ("inject",),
        "probing inject", ("end",))
    same_rows(session, expected)
    assert not session.code and "Traceback" not in session.err, session
    assert "memory directly, registers through " + name in session.part("info")
    assert re.search(r"^python +stacks ", session.part("tables"), re.M)
    assert shell_rows(saved)["stacks"] == expected["stacks"]
    assert session.part("eval").strip().endswith("shown\n42"), session
    assert "the agent was there already" in answers(session, "inject")
    assert process.alive() and shell(process, "40 + 2") == "42\n"
