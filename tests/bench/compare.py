# SPDX-License-Identifier: GPL-3.0-or-later
"""What tools can do with one running program, each cell by a command that is run, and how long that
takes. Writes docs/comparison.tsv, which has the commands, and the table of docs/comparison.md.

    compare.py --probing FILE --peers FOLDER [--rounds N]

The program runs on the Python of the virtual environment FOLDER, in which the tools are. What Python 3.15
has itself (pdb, profiling.sampling, asyncio) is asked of the same program on that version.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE, TABLE = ROOT / "docs/comparison.md", ROOT / "docs/comparison.tsv"
BEGIN, END = "<!-- begin: make bench-compare -->", "<!-- end -->"
HEAD = "# SPDX-License-Identifier: GPL-3.0-or-later\nquestion\ttool\tfigure\tcommand\n"
TOOLS = ("probing", "py-spy", "austin", "pystack", "memray", "gdb", "Python's own")
OWN = TOOLS[-1]
SECONDS = 60
GDB = "gdb -q -batch -nx -p {pid} -ex 'source {script}' -ex "

EVAL_INPUT = 258  # Py_eval_input of Python.h
RUN_BY_GDB = (
    "gdb -q -batch -nx -p {pid} -ex 'set $gil = (int)PyGILState_Ensure()' -ex 'set $names = (void *)PyDict_New()' "
    "-ex 'print (long)PyLong_AsLong((void *)PyRun_String(\"6 * 7\", %d, $names, $names))' "
    "-ex 'call (void)PyGILState_Release($gil)'" % EVAL_INPUT)

# The question; what an answer has in it, as a regular expression; and how each tool is asked. No
# command: the tool's own help has none for that.
QUESTIONS = (
    ("All threads, with functions and lines", r"(?s)(?=.*hold)(?=.*want)(?=.*work)(?=.*fetch|.*serve|.*run_forever)", {
        "probing": "{probing} {pid} dump", "py-spy": "py-spy dump -p {pid}", "pystack": "pystack remote {pid}",
        "austin": "austin -w {pid}", "Python's own": "{own} profiling.sampling dump --all-threads {pid}", "gdb": GDB + "'thread apply all py-bt'"}),
    ("Variables of each function", r"needle-42", {
        "probing": "{probing} {pid} dump --locals", "py-spy": "py-spy dump --locals -p {pid}",
        "pystack": "pystack remote --locals {pid}",
        "Python's own": "{own} pdb -p {pid} -c 'p locals()' -c q", "gdb": GDB + "'thread apply all py-locals'"}),
    ("One value inside an object", r"\b641\b", {
        "probing": "{probing} {pid} print \"job.parts[1]['size']\"",
        "Python's own": "{own} pdb -p {pid} -c \"p job.parts[1]['size']\" -c q"}),
    ("C functions between those of Python", r"(?s)(?=.*work)(?=.*(nanosleep|pysleep|time_sleep|sem_|futex|epoll_wait))", {
        "probing": "{probing} {pid} dump --native", "py-spy": "py-spy dump --native -p {pid}",
        "pystack": "pystack remote --native {pid}", "gdb": GDB + "'thread apply all bt'",
        "austin": "austinp -i 10ms -x 1 -o {out}.mojo -p {pid} && strings {out}.mojo"}),
    ("The holder of the lock that a thread waits for", r"held by \S+.* in hold", {
        "probing": "{probing} {pid} dump"}),
    ("Tasks of asyncio that wait", r"(?s)(fetch.*){3}|3 tasks.*fetch|fetch.*3", {
        "probing": "{probing} {pid} query 'SELECT name, coro FROM python.tasks'", "Python's own": "{own} asyncio ps {pid}"}),
    ("A core file", r"(?s)(?=.*hold)(?=.*want)(?=.*work)", {
        "probing": "{probing} {core} dump", "pystack": "pystack core {core}",
        "gdb": "gdb -q -batch -nx {python} {core} -ex 'source {script}' -ex 'thread apply all py-bt'"}),
    ("Samples for 2 s, drawn or folded", r"work", {
        "probing": "{probing} {pid} flamegraph --duration 2s --output {out}.svg && grep -o work {out}.svg",
        "py-spy": "py-spy record -d 2 -o {out}.svg -p {pid} && grep -o work {out}.svg",
        "austin": "austin -x 2 -o {out}.austin -p {pid} && grep -o work {out}.austin",
        "Python's own": "{own} profiling.sampling attach -d 2 --flamegraph -o {out}.html {pid} && grep -o work {out}.html"}),
    ("What grows, and who holds it", r"bytearray(.|\n)*kept", {
        "probing": "{probing} {pid} memory --growth 2s"}),
    ("Lines that allocate, from now on", r"compared.py", {
        "probing": "{probing} {pid} memory --sites 3s",
        "memray": "rm -f {out}.*; memray attach -o {out}.bin --duration 2 {pid}; sleep 3; memray table -o {out}.html {out}.bin && "
                  "grep -o compared.py {out}.html"}),
    ("The value of code that runs in it", r"^42$|= 42$", {
        "probing": "{probing} {pid} eval '6 * 7'", "Python's own": "{own} pdb -p {pid} -c 'p 6 * 7' -c q", "gdb": RUN_BY_GDB}),
    ("SQL", r"sleep|futex", {
        "probing": "{probing} {pid} query 'SELECT state, waits_for FROM python.threads'"}),
    ("What is wrong, in one sentence", r"nothing is wrong|still|unknown|wait", {
        "probing": "{probing} {pid} why"}),
)


def run(command, folder):
    began = time.monotonic()
    done = subprocess.run(["timeout", str(SECONDS), "bash", "-c", command], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return time.monotonic() - began, done.stdout.decode("utf-8", "replace")


def figure(command, answers, folder, rounds):
    """The median of the milliseconds that an answer takes; or that it is none."""
    times = []
    for _ in range(rounds):
        seconds, said = run(command, folder)
        if not re.search(answers, said, re.M):
            print("  no answer: %s\n%s" % (command, said[-600:]), file=sys.stderr)
            return "no"
        times.append(seconds)
    return "%.0f ms" % (1000 * statistics.median(times)) if statistics.median(times) < 1 else \
        "%.1f s" % statistics.median(times)


def version_of(tool, environment):
    command = {"gdb": "gdb --version", "probing": environment["probing"] + " --version",
               OWN: environment["own"][:-len(" -m")] + " --version"}.get(tool, tool + " --version")
    said = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    found = re.search(rb"\d+\.\d[\w.]*", said.stdout)
    return found.group().decode() if found else None


class Program:
    """The compared program; another one where a tool has ended it."""

    def __init__(self, *python):
        self.words = [*python, ROOT / "tests/bench/compared.py"]
        self.process = None

    def pid(self):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE)
            assert self.process.stdout.readline() == b"ready\n"
        return self.process.pid

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def newest():
    """How Python 3.15 is started, if it is one that `make test-interpreters` has got."""
    said = subprocess.check_output([sys.executable, ROOT / "tests/tools/test-interpreters", "--json"])
    return next((["env", *map("=".join, each.get("env", {}).items()), each["exe"]] for each in json.loads(said)
                 if each["name"].endswith("-3.15")), ["python3.15"])


def measure(args, folder):
    real = pathlib.Path(args.python).resolve()
    script = next(iter(sorted(real.parent.glob("python3*-gdb.py"))), None)
    about = {"probing": str(pathlib.Path(args.probing).resolve()), "python": real, "script": script,
             "out": folder + "/out", "core": folder + "/core", "own": " ".join([*newest(), "-m"])}
    versions = {tool: version_of(tool, about) for tool in TOOLS}
    usual, own = Program(args.python), Program(*newest())
    subprocess.run(["gdb", "-q", "-batch", "-nx", "-p", str(usual.pid()), "-ex", "gcore %s/core" % folder],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    for question, answers, asked in QUESTIONS:
        for tool in TOOLS:
            command, program = asked.get(tool, ""), own if tool == OWN else usual
            if not command:
                said = "–"
            elif not versions[tool] or (tool == "gdb" and not script):
                said = "not here"
            else:
                pid = program.pid()
                said = figure(command.format(pid=pid, **about), answers, folder, args.rounds)
                said = said if program.pid() == pid else "ended the program"
            yield question, tool, said, command
    usual.end()
    own.end()
    version = re.search(r"\d+\.\d+\.\d+", subprocess.check_output([args.python, "--version"], text=True))[0]
    yield "versions", "Python", version, ""
    for tool in TOOLS:
        yield "versions", tool, versions[tool] or "not here", ""


def page(rows):
    rows, versions = [row for row in rows if row[0] != "versions"], [row for row in rows if row[0] == "versions"]
    lines = ["| | %s |" % " | ".join(TOOLS), "|---|%s" % ("---|" * len(TOOLS))]
    for question in dict.fromkeys(row[0] for row in rows):
        lines.append("| %s | %s |" % (question, " | ".join(row[2] for row in rows if row[0] == question)))
    return "\n".join([*lines, "", "%s; %s." % (", ".join("%s %s" % row[1:3] for row in versions),
                                              datetime.date.today().isoformat())])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.python = str(pathlib.Path(args.peers).resolve() / "bin/python3")
    os.environ["PATH"] = "%s:%s" % (pathlib.Path(args.python).parent, os.environ["PATH"])
    with tempfile.TemporaryDirectory() as folder:
        rows = list(measure(args, folder))
    TABLE.write_text(HEAD + "".join("%s\n" % "\t".join(row) for row in rows), "utf-8")
    text = PAGE.read_text("utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text("%s%s\n%s\n%s%s" % (before, BEGIN, page(rows), END, after), "utf-8")


main()
