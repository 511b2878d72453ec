# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages say what the program does.

A block of a page is run again if a comment in front of it says "replay: docs/demo.py": its commands
are about that program, which is started for the page, and what they print must be what the page
shows, but for pids, addresses, times and the like. With "type: docs/demo.py" it is one command,
on a terminal, and what is typed at its prompts. With "recorded: docs/examples" they are about recordings
in that folder, and print exactly that. With "gdb: docs/demo.py" they are commands of gdb, which
holds that program, and with "lldb: docs/demo.py" of LLDB.

Run as a program, writes what the commands print now into the pages, and the figures of
docs/benchmarks.tsv into docs/benchmarks.md and the README. In a new block, PID stands for the program's pid and TID:name
for the thread of that name.

The command is $PROBING_BINARY, or build/probing; without it, only what needs none is checked.
"""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/live"))
sys.path.insert(0, str(ROOT / "tests/lint"))

import own_gdb  # noqa: E402,F401
import debuggers  # noqa: E402
import lint  # noqa: E402
from commands import COMMANDS  # noqa: E402
from terminal import Terminal  # noqa: E402

BINARY = os.environ.get("PROBING_BINARY", str(ROOT / "build/probing"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Whose transcripts the pages have: Debian 12's.
PYTHON, PYTHON_VERSION = "/usr/bin/python3", "3.11."
# A function of the C library whose name is in its debug files alone.
OF_LIBC = "__futex_abstimed_wait_common"
# Variables of the environment that a page shows, and that a machine may have.
OF_JOBS = ("NCCL_", "CUDA_", "TORCH_", "OMP_")
# How often what a page shows is tried: a thread of the program may just wait for the GIL.
TRIES = 12

REPLAY = re.compile(r"<!-- replay: (\S+) -->\n```console\n(.*?)^```$", re.S | re.M)
RECORDED = re.compile(r"<!-- recorded: (\S+) -->\n```console\n(.*?)^```$", re.S | re.M)
TYPED = re.compile(r"<!-- type: (\S+) -->\n```console\n\$ (.*?)\n(.*?)^```$", re.S | re.M)
IN_DEBUGGER = re.compile(r"<!-- (gdb|lldb): (\S+) -->\n```console\n(.*?)^```$", re.S | re.M)
PROMPT = re.compile(r"^(\d+ >>> | +\.\.\. ?)(.*)$", re.M)
FIGURES = re.compile(r"(<!-- figures of docs/benchmarks.md -->\n)(.*?)(?=\n\n|\Z)", re.S)

needs_binary = pytest.mark.skipif(not os.access(BINARY, os.X_OK),
                                  reason="%s is missing: run make first" % BINARY)


def module_at(path):
    """A program of ours, as a module."""
    loader = importlib.machinery.SourceFileLoader(os.path.basename(path), str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


bench_figures = module_at("tests/bench/figures.py")


def name_of(page):
    return str(page.relative_to(ROOT))


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


# Links

def anchors(page):
    """The anchors of a page's headings, as code forges make them."""
    for heading in re.findall(r"^#+ +(.+)$", without_code(page.read_text()), re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        yield re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), "%s leads nowhere" % link
        if anchor:
            assert anchor in anchors(target), "%s: there is no such heading" % link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_named_files_exist(page):
    """`base/error.h`, `tests/live/`: paths below one of our folders."""
    if page.name == "CHANGELOG.md":
        return
    for path in re.findall(r"`((?:%s|agent|gdbplugin|docs|tests|build-aux)/[\w./-]+)`" % "|".join(lint.ORDER),
                           without_code(page.read_text())):
        if not re.search(r"NAME|VERSION|ARCH|SCHEMA", path):
            assert (ROOT / path).exists(), "%s does not exist" % path


def test_goals_of_make_exist():
    makefiles = [ROOT / "GNUmakefile", *ROOT.rglob("module.mk")]
    goals = set(re.findall(r"^([a-z][a-z-]*):", "\n".join(m.read_text() for m in makefiles), re.M))
    for page in PAGES:
        for goal in re.findall(r"`make ([a-z][a-z-]*)`|^(?:\$ )?make ([a-z][a-z-]*)",
                               page.read_text(), re.M):
            assert (goal[0] or goal[1]) in goals, "%s: make %s" % (name_of(page), goal)


def test_every_page_is_in_the_index():
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text() + (docs / "tables.md").read_text()
    for page in docs.rglob("*.md"):
        if page != docs / "README.md":
            assert "(%s)" % page.relative_to(docs) in index, name_of(page)
    assert "(docs/README.md)" in (ROOT / "README.md").read_text()


def test_support_matrix_is_current():
    subprocess.run([ROOT / "tests/tools/gen-support-matrix", "--check"], check=True)


def test_sums_of_the_fault_matrix_are_current():
    subprocess.run([ROOT / "tests/tools/check-faults", "--check"], check=True)


def test_new_counts_of_the_fault_matrix_are_kept_with_the_old(monkeypatch, tmp_path):
    faults = module_at("tests/tools/check-faults")
    for name in ("PAGE", "COUNTS"):
        copy = tmp_path / getattr(faults, name).name
        copy.write_text(getattr(faults, name).read_text())
        monkeypatch.setattr(faults, name, copy)
    before = faults.old_rows()
    faults.write({"heap, 1 thread": {"runs": 7, "loaded": 6, "refused": 1, "pauses": [300, 500, 900], "times": [0.01]},
                  "hostile: new": {"runs": 1, "loaded": 0, "refused": 1, "pauses": [], "times": []},
                  "hostile: not run": {"runs": 0}}, {"hostile: new"})
    after = faults.old_rows()
    assert after.pop("heap, 1 thread")[1:8] == ["7", "6", "1", "0", "0.50", "0.9", "10.0"]
    assert after.pop("hostile: new")[1:8] == ["1", "0", "1", "1", "-", "-", "-"]
    del before["heap, 1 thread"]
    assert after == before
    assert "| hostile target | 6 | 1,001 | 0 | 1,001 | 1 |" in faults.PAGE.read_text()


@needs_binary
def test_tables_are_current():
    subprocess.run([ROOT / "tests/tools/gen-tables", "--check"], check=True,
                   env=dict(os.environ, PROBING_BINARY=BINARY))


@needs_binary
def test_http_interface_is_current():
    subprocess.run([ROOT / "tests/tools/gen-http-api", "--check"], check=True,
                   env=dict(os.environ, PROBING_BINARY=BINARY))


def test_example_command_compiles():
    page = (ROOT / "docs/howto/add-command.md").read_text()
    code = textwrap.dedent(re.search(r"^ *```c\n(.*?)^ *```$", page, re.S | re.M)[1])
    flags = "-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-missing-field-initializers -fsyntax-only -x c -".split()
    subprocess.run(["cc", "-I", ROOT, *flags], input=code.encode(), check=True)


# Command lines

def command_lines(page):
    """Each command line of ours that a page shows, in words."""
    text = page.read_text()
    found = []
    for block in re.findall(r"^```(?:console|sh)\n(.*?)^```$", text, re.S | re.M):
        found += re.findall(r"^(?:\$ )?(?:sudo )?(probing (?:[^\n\"]|\"[^\"]*\")*)$", block, re.M)
    found += re.findall(r"`(?:sudo )?(probing [^`\n]+)`", without_code(text))
    for line in found:
        yield without_shell(line.replace("\n> ", "\n"))


def without_shell(line):
    """The command in front of a pipe, a redirection, a comment, another command, or a program that
    it starts."""
    parts = re.split(r'("[^"]*")', line)
    for i in range(0, len(parts), 2):
        first, *more = re.split(r" (?:[|>;]|2>|&&|#|--)(?: |$)", parts[i], maxsplit=1)
        if more:
            return "".join(parts[:i]) + first
    return line


def help_of(*words):
    return subprocess.run([BINARY, *words, "--help"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def options_of(text):
    """{"--dump": True if it takes a value} with short forms, of a help text."""
    options = {}
    for short, long, value in re.findall(r"^  (?:-(\w), |    )--([\w-]+)( [A-Z]+)?", text, re.M):
        options["--" + long] = bool(value)
        if short:
            options["-" + short] = bool(value)
    return options


def names_of_commands():
    """{"dbg": "debug", …}"""
    names = {}
    for command in COMMANDS:
        match = re.search(r"^Names: (.*)$", help_of(command), re.M)
        for name in match[1].split(", ") if match else [command]:
            names[name] = command
    return names


def check_line(line, names):
    """Parses a command line by the help; texts in capitals stand for values."""
    words = shlex.split(line)[1:]
    at = next((i for i, word in enumerate(words) if word in names), None)
    if at is None:
        known = options_of(help_of())
    else:
        own = options_of(help_of(words[at]))
        known = {**options_of(help_of()), **own}
    i = 0
    while i < len(words):
        option, has_value, _ = words[i].partition("=")
        if option.startswith("-"):
            # In front of the command a letter means what it means to the program.
            table = known if at is None or i > at else {**known, **options_of(help_of())}
            assert option in table or option == "--man", "there is no option %s" % option
            i += table.get(option, False) and not has_value
        i += 1


@needs_binary
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_command_lines_parse(page):
    names = names_of_commands()
    for line in command_lines(page):
        if "…" in line or "COMMAND" in line:
            continue
        try:
            check_line(line, names)
        except AssertionError as error:
            pytest.fail("%s: %s" % (line, error))


@needs_binary
def test_configuration_is_current():
    subprocess.run([ROOT / "tests/tools/gen-configuration", "--check"], check=True,
                   env=dict(os.environ, PROBING_BINARY=BINARY))


@needs_binary
def test_help_lists_these_commands():
    listed = re.findall(r"^  ([a-z]+)(?:, |  )", help_of().split("Commands:")[1].split("\n\n")[0],
                        re.M)
    assert listed == COMMANDS


@needs_binary
def test_rules_are_those_of_the_page():
    rules = json.loads(subprocess.check_output([BINARY, "why", "--rules", "--json"]))
    page = (ROOT / "docs/why.md").read_text()
    assert re.findall(r"^\| (\d+) \| `(\w+)` \| (.*) \|$", page, re.M) == [
        (str(rule["exit_code"]), rule["rule"], rule["proves"]) for rule in rules]


@needs_binary
def test_guide_has_every_command_and_variable():
    """Options are in the man page: tests/live/cli/test_cli.py."""
    guide = (ROOT / "docs/guide.md").read_text()
    names = names_of_commands()
    for command in COMMANDS:
        spelled = "|".join(name for name in names if names[name] == command)
        assert re.search(r"`probing (?:%s)\b" % spelled, guide), command
    environment = help_of().split("Environment:")[1].split("\n\n")[0]
    for variable in re.findall(r"^  ([A-Z_]+)", environment, re.M):
        assert variable in guide, variable
    for code in re.findall(r"^  (\d)  ", help_of(), re.M):
        assert "| %s |" % code in guide, "exit code %s" % code


# Transcripts

DURATION = r"\d+(?:\.\d+)? (?:µs|ms|s|m|h|d)\b(?: \d+ [smh]\b)?"
SAME = [
    (r"\S*/python3[\d.]*", "python3"),
    (r"Python 3\.[\d.]+", "Python 3"),
    (r"(?<=[a-z] )" + DURATION + r"(?= in )", ""),
    (DURATION, "TIME"),
    (r"0x[0-9a-f]+", "ADDRESS"),
    (r"(?<=owner=)\d+|(?<=daemon )\d+", "THREAD"),
    (r"\b\d{2,}(?:(?:–|, )\d{2,})+$", "TIDS"),
    (r"/tmp/tmp\w+", "FOLDER"),
    (r"(?<![\w.])\d+\.\d+(?![\w.])", "NUMBER"),
    (r"(?<=127\.0\.0\.1:)\d+", "PORT"),
    (r"\(C frame \d+, ", "(C frame N, "),
    (re.escape(str(ROOT)) + "/docs/", "docs/"),
    (r"\S*/(?=demo_steps\.py)", "docs/"),
    (r"(?<!demo)(?<!demo_steps)\.py:\d+", ".py:LINE"),
    (r"(?<![\w.:])\d{2,}(?![\w.])", "NUMBER"),
    (r" +", " "),
    (r"─+", "─"),
]


# Where the busy main thread of docs/demo.py is: in train(), or in what that calls. As frames, with
# the source if that is asked for; as rows; as a list in a row.
BUSY = [
    (r"^ *Trainer\.forward(?:\.<locals>\.<genexpr>)? +\S*demo\.py:18.*\n"
     r"(?: +.*for w, x in.*\n +\^+\n)?", ""),
    (r"^( *Trainer\.train +\S*demo\.py:)2[1-4]\b(.*\n)(?: +.*self\..*\n +\^+\n)?", r"\1BUSY\2"),
    (r"^ *incomplete: inner frames change while they are read\n", ""),
    (r"^(?:<genexpr>|forward) +__main__ .*\n", ""),
    (r"(?:<genexpr> < )?(?:forward < )?train < main(?: < <module>)?", "train"),
]


def normal(text):
    """What is the same each time."""
    lines = []
    for pattern, same in BUSY:
        text = re.sub(pattern, same, text, flags=re.M)
    for line in text.rstrip("\n").split("\n"):
        for pattern, same in SAME:
            line = re.sub(pattern, same, line)
        # Where a column of numbers begins depends on how long they are.
        lines.append(line.strip())
    return lines


def test_only_the_place_of_the_busy_thread_is_hidden():
    def stack(*inner):
        return "".join("    %-20s demo.py:%d\n" % frame for frame in (*inner, ("main", 75)))

    train, forward = ("Trainer.train", 22), ("Trainer.forward", 18)
    shown = normal(stack(forward, train))
    assert normal(stack(("Trainer.train", 24))) == shown
    assert normal(stack(("Trainer.forward.<locals>.<genexpr>", 18), forward, train)) == shown
    for wrong in ((forward,), (forward, forward[:1] + (19,), train), (train, train),
                  (("Trainer.train", 20),), (forward, ("load", 29), train)):
        assert normal(stack(*wrong)) != shown, wrong


class Program:
    """A program of a page, running, and a folder that the commands run in."""

    def __init__(self, script):
        self.folder = tempfile.TemporaryDirectory()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("PYTHON", "PROBING_", *OF_JOBS))}
        self.environment.update(PATH="%s:/usr/bin:/bin" % self.isolated(), PROBING_TARGET="",
                                XDG_CACHE_HOME=self.folder.name, OMP_NUM_THREADS="4")
        self.process = subprocess.Popen(["python3", script], executable=PYTHON, cwd=ROOT,
                                        env=self.environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def isolated(self):
        """A folder with a python3 that sees no packages of this machine or user: what is installed
        would be in what the commands print."""
        folder = pathlib.Path(self.folder.name, "python", "bin")
        folder.mkdir(parents=True)
        (folder / "python3").symlink_to(PYTHON)
        (folder.parent / "pyvenv.cfg").write_text(
            "home = %s\ninclude-system-site-packages = false\n" % os.path.dirname(PYTHON))
        return folder

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def tid(self, name):
        text = self.run("probing %d debug --dump --no-fold" % self.pid)
        return re.search(r"^(\d+) %s " % re.escape(name), text, re.M)[1]

    def has_function(self, name):
        return "1" in self.run("probing %d query -f csv \"SELECT count(*) FROM native.symbols WHERE name = '%s'\"" % (
            self.pid, name))

    def first_of_folded(self):
        """The first of the threads that are shown as one."""
        for _ in range(TRIES):  # one may just have the GIL
            text = self.run("probing %d debug --dump" % self.pid)
            found = re.search(r"^\d+ threads .*? (\d+)(?:–|, )\d+\b.*$", text, re.M)
            if found:
                return found[1]
        raise AssertionError(text)

    def command(self, line, page):
        """The line with the pid and tids of this program in place of those that it shows."""
        page_pids = set(re.findall(r"^(?:\$ probing )?(\d+) (?: python3|\w)", page, re.M)) | {"PID"}

        def number(match):
            """One number of the page; a tid of this program may be another number of the page."""
            before, word = match[1] or "", match[2]
            if word.startswith("TID:"):
                return before + self.tid(word[4:])
            name = before and re.search(r"^%s ([\w-]+)  " % word, page, re.M)
            if name:
                return before + self.tid(name[1])
            if before and re.search(r"^\d+ threads .* %s–\d+$" % word, page, re.M):
                return before + self.first_of_folded()
            return before + (str(self.pid) if word in page_pids else word)

        return re.sub(r"(--tid )?\b(TID:[\w-]+|PID|\d+)\b", number, line)

    def run(self, line):
        """What a command prints, on both streams."""
        words = shlex.split(line)
        assert words[0] == "probing"
        return subprocess.run([BINARY, *words[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=self.folder.name, env=self.environment,
                              text=True).stdout

    def usual(self, line):
        """What it prints most often, for a page."""
        shapes = {}
        for _ in range(20):
            printed = self.run(line)
            shapes.setdefault("\n".join(normal(printed)), []).append(printed)
        return max(shapes.values(), key=len)[-1]


def test_a_tid_may_be_a_number_of_the_page():
    program = object.__new__(Program)
    program.pid, program.tid = 500, {"evaluate": "300", "main": "500"}.get
    program.first_of_folded = lambda: "502"
    page = "$ probing 300 backtrace --tid 306\n300  python3 docs/demo.py\n\n306 evaluate  idle\n" \
        "3 threads  idle in futex   301–303\n"
    assert program.command("probing 300 backtrace --tid 306", page) == \
        "probing 500 backtrace --tid 300"
    assert program.command("probing PID backtrace --tid TID:evaluate -n 7", page) == \
        "probing 500 backtrace --tid 300 -n 7"
    assert program.command("probing 300 print --tid 301 self", page) == "probing 500 print --tid 502 self"


def commands_of(block):
    """(command, what it prints) for each of a block."""
    parts = re.split(r"^\$ (.*(?:\n> .*)*)\n", block, flags=re.M)
    return list(zip((line.replace("\n> ", "\n") for line in parts[1::2]), parts[2::2]))


def skip_other_python():
    version = subprocess.run([PYTHON, "-c", "import sys; print(sys.version)"],
                             stdout=subprocess.PIPE, text=True).stdout if \
        os.access(PYTHON, os.X_OK) else "none"
    if not version.startswith(PYTHON_VERSION):
        pytest.skip("the transcripts are of %s %s*, which is %s here" % (
            PYTHON, PYTHON_VERSION, version.split(" ")[0]))


@needs_binary
def test_transcripts_are_free_of_installed_packages(monkeypatch, tmp_path):
    skip_other_python()
    site = tmp_path / ".local/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "imported_at_startup.py").write_text("__version__ = '1.0'\n")
    (site / "imported.pth").write_text("import imported_at_startup\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYTHONNOUSERSITE", raising=False)
    modules = subprocess.run([PYTHON, "-c", "import sys; print(*sys.modules)"],
                             stdout=subprocess.PIPE, check=True, text=True).stdout
    assert "imported_at_startup" in modules
    with Program("docs/demo.py") as program:
        assert "imported_at_startup" not in program.run(
            "probing %d query 'SELECT name FROM python.modules'" % program.pid)
        # Nor is any other that Python did not come with.
        printed = program.run("probing %d query -f csv \"SELECT file FROM python.modules WHERE file "
                              "LIKE '%%-packages%%'\"" % program.pid)
        assert printed == "file\r\n" or printed == "file\n", printed


@needs_binary
@pytest.mark.parametrize("page", [p for p in PAGES if REPLAY.search(p.read_text())], ids=name_of)
def test_transcripts_are_what_is_printed(page):
    skip_other_python()
    text = page.read_text()
    blocks = REPLAY.findall(text)
    unnamed = False
    with Program(blocks[0][0]) as program:
        for script, block in blocks:
            assert script == blocks[0][0]
            for line, shown in commands_of(block):
                if OF_LIBC in shown and not program.has_function(OF_LIBC):
                    unnamed = True
                    continue
                command = program.command(line, text)
                for _ in range(TRIES):
                    printed = program.run(command)
                    if normal(printed) == normal(shown):
                        break
                assert normal(printed) == normal(shown), command
    if unnamed:
        pytest.skip("libc6-dbg is not installed")


def run_recorded(folder, line):
    """What a command about recordings of a folder prints, on both streams."""
    words = shlex.split(line)
    assert words[0] == "probing"
    return subprocess.run([BINARY, *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT / folder,
                          env=dict(os.environ, PROBING_TARGET="", TZ="UTC"), text=True, check=False).stdout


def shortened(printed, shown):
    """What is printed, without the lines in whose place the page has a line of "…"."""
    lines = printed.rstrip("\n").split("\n")
    if "…" in shown:
        first, last = shown.index("…"), len(shown) - shown.index("…") - 1
        lines[first:len(lines) - last] = ["…"]
    return lines


@needs_binary
@pytest.mark.parametrize("page", [p for p in PAGES if RECORDED.search(p.read_text())], ids=name_of)
def test_recordings_are_shown_as_they_are(page):
    for folder, block in RECORDED.findall(page.read_text()):
        for line, shown in commands_of(block):
            lines = shown.rstrip("\n").split("\n")
            assert shortened(run_recorded(folder, line), lines) == lines, line


def conversation(program, line, shown):
    """What a terminal shows while the lines that @shown has behind its prompts are typed."""
    line = re.sub(r"\b\d+\b", str(program.pid), line)
    pid = str(program.pid)
    with Terminal(*shlex.split(line)[1:], size=(24, 200), TERM="dumb", NO_COLOR="1",
                  INPUTRC="/dev/null", HOME=program.folder.name) as terminal:
        text = ""
        for prompt, typed in PROMPT.findall(shown):
            prompt = pid + " >>> " if ">" in prompt else " " * len(pid) + " ... "
            text += terminal.until(prompt) + prompt
            terminal.send(typed + "\r")
        return text + terminal.end()[0]


@needs_binary
@pytest.mark.parametrize("page", [p for p in PAGES if TYPED.search(p.read_text())], ids=name_of)
def test_conversations_are_as_shown(page):
    skip_other_python()
    for script, line, shown in TYPED.findall(page.read_text()):
        with Program(script) as program:
            assert normal(conversation(program, line, shown)) == normal(shown)


def in_debugger(start, program, lines):
    """What gdb or LLDB prints for each line, errors too."""
    commands = ["set print thread-events off"] if start is debuggers.gdb else [
        "settings set stop-line-count-before 0", "settings set stop-line-count-after 0",
        "settings set stop-disassembly-display never"]
    for number, line in enumerate(lines):
        commands += [("line%d" % number,), debuggers.tried(start, line)]
    session = start(*commands, ("end",), arguments=["-p", program.pid], cwd=program.folder.name)
    # Whether the busy thread has the GIL just then is chance; of a stop, LLDB tells the place in C.
    return [re.sub(r"^warning: probing: thread \d+ ran on meanwhile\n|^Process \d+ (?:resuming|stopped)\n|"
                   r"^\* thread #\d+, name = .*\n|^ +frame #0: .*probing_agent_break_stops.*\n", "",
                   session.part("line%d" % number), flags=re.M) for number in range(len(lines))]


def sessions(name):
    """[(script, block)] of that debugger."""
    return [pytest.param(script, block, id="%s-%d" % (name_of(page), number))
            for page in PAGES
            for number, (which, script, block) in enumerate(IN_DEBUGGER.findall(page.read_text()))
            if which == name]


def session_is_as_shown(start, script, block):
    skip_other_python()
    parts = re.split(r"^\(\w+\) (.*)\n", block, flags=re.M)
    lines, shown = parts[1::2], [normal(text) for text in parts[2::2]]
    with Program(script) as program:
        printed = [normal(text) for text in in_debugger(start, program, lines)]
    assert printed == shown


@needs_binary
@debuggers.needs_gdb
@pytest.mark.parametrize("script, block", sessions("gdb"))
def test_sessions_of_gdb_are_as_shown(script, block):
    if "probing break-py" in block or "probing eval" in block:
        debuggers.skip_if_refused()
    session_is_as_shown(debuggers.gdb, script, block)


@needs_binary
@debuggers.needs_lldb
@pytest.mark.parametrize("script, block", sessions("lldb"))
def test_sessions_of_lldb_are_as_shown(script, block):
    session_is_as_shown(debuggers.lldb, script, block)


def test_both_debuggers_have_a_session():
    assert sessions("gdb") and sessions("lldb")


def test_readme_has_a_transcript():
    text = (ROOT / "README.md").read_text()
    shown = [line for _, block in REPLAY.findall(text) for line, _ in commands_of(block)]
    assert any(" backtrace " in line for line in shown)


# Messages

LITERALS = r'((?:"(?:\\.|[^"\\])*"\s*)+)'
# After these a person can do something, and the hint says what.
HINTED = "PERMISSION|TIMEOUT"
# Where such a text is a reason within another message, or in a log; or gets its hint from the caller.
REASONS = ("base/jail.c", "clickhouse/ship_metrics.c", "profile/native/perf_map.c", "target/proc/refusal.c")
# What people type by mistake. 4194305 is above the highest pid.
MISTAKES = ["nosuch", "dumb 1", "tables nosuch", "help nosuch", "completion nosuch", "dump 4194305", "4194305 print x",
            "query", "query -t 4194305 'SELECT 1'", "query -f nosuch 'SELECT 1'", "dump 'no such process'", "dump nosuch.core",
            "dump /dev/full", "dump 4194305 --locls", "eval -t 4194305 1", "perf /dev/full", "export nosuch",
            "skill run nosuch 4194305", "cluster", "launch --", "serve --address 0.0.0.0:0"]


def sources():
    for room in lint.ORDER:
        for path in sorted((ROOT / room).rglob("*.c")):
            yield str(path.relative_to(ROOT)), path.read_text()


def joined(literals):
    return re.sub(r"\\(.)", r"\1", "".join(re.findall(r'"((?:\\.|[^"\\])*)"', literals)))


def fragments(text, gap):
    return [part.strip() for part in re.split(gap, text) if len(part.strip()) > 3]


def has_hint(text, match):
    """True for an error that is put into prb_error_hint(), or into a variable that is later."""
    before, after = text[:match.start()], text[match.end():].split("\n}")[0]
    variable = re.search(r"(\w+)\s*=\s*$", before)
    return bool(re.search(r"prb_error_hint\(\s*$", before)
                or variable and re.search(r"prb_error_hint\(\s*%s\b" % variable[1], after))


def test_errors_that_can_be_helped_have_a_hint():
    seen = 0
    for name, text in sources():
        for match in re.finditer(r"prb_error_create\(\s*PRB_ERROR_(?:%s),\s*%s" % (HINTED, LITERALS), text):
            seen += 1
            if name not in REASONS and re.search("[a-z]{2}", joined(match[1])):
                assert has_hint(text, match), "%s: '%s' has no hint" % (name, joined(match[1]))
    assert seen > 50


@needs_binary
@pytest.mark.parametrize("line", [*MISTAKES, *(command + " --nosuch" for command in COMMANDS)])
def test_mistakes_are_told_with_a_hint(line):
    done = subprocess.run([BINARY, *shlex.split(line)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=dict(os.environ, PROBING_TARGET=""), text=True, check=False, timeout=60)
    assert done.returncode and not done.stdout
    assert re.match(r"probing: \S.*\n  \S", done.stderr), done.stderr


def test_explained_messages_exist():
    """The first column of each table, word for word in some source."""
    known = " ".join(joined(match[1]) for _, text in sources()
                     for match in re.finditer(LITERALS, text))
    known += known.replace("%s", "")
    for row in re.findall(r"^\| (.*?) \|", (ROOT / "docs/troubleshooting.md").read_text(), re.M):
        for message in re.findall(r"`([^`]+)`", row):
            if "--" in message and " " not in message:
                continue
            for fragment in fragments(message, r"\b[A-Z]{2,}\b|\b[AN]\b(?:\.B)?|\b[0-3](?=[: ])"):
                fragment = re.sub(r": (?:No such process|Operation not permitted)$", "", fragment)
                fragment = fragment.strip(" :'/()")
                assert fragment in known, "'%s' is in no source" % fragment


# Figures

ROWS = [
    ("dump, 8 threads × 50 frames", "Dump, 8 threads × 50 frames"),
    ("dump, 151 threads × 20 frames", "Dump, 151 threads × 20 frames"),
    ("the same with native frames, 8 × 50", "Dump with native frames, 8 threads × 50 frames"),
]
TOOLS = [("Probing", "probing"), ("py-spy", "py-spy dump"), ("pystack", "pystack remote"),
         ("gdb, all native stacks", "gdb, all native stacks")]


def figures():
    """The table of the README, from the figures that `make bench` writes."""
    measured = bench_figures.read(ROOT / "docs/benchmarks.tsv")
    lines = ["| whole command, median ms | %s |" % " | ".join(name for name, _ in TOOLS),
             "|---|" + "---|" * len(TOOLS)]
    for title, section in ROWS:
        lines.append("| %s | %s |" % (title, " | ".join(
            measured.get((section, key, "median ms"), "–") for _, key in TOOLS)))
    return "\n".join(lines)


def test_figures_are_those_of_the_benchmark():
    assert FIGURES.search((ROOT / "README.md").read_text())[2] == figures()
    page = (ROOT / "docs/benchmarks.md").read_text()
    assert page == bench_figures.updated(page, bench_figures.read(ROOT / "docs/benchmarks.tsv"))


def test_sections_that_are_measured_again_replace_the_old(tmp_path):
    data = tmp_path / "figures.tsv"
    data.write_text("\n".join(bench_figures.HEAD) + "\n")
    first, second = "### A\n\n| | ms | ms |\n|---|---|---|\n| x | 1 | 2 |\n| x | 3 | – |\n", "### B\n| | s |\n|-|-|\n| y | 4 |\n"
    bench_figures.write(data, bench_figures.parsed((first + second).split("\n")))
    assert bench_figures.read(data) == {("A", "x", "ms"): "1", ("A", "x", "ms (2)"): "2", ("A", "x (2)", "ms"): "3",
                                        ("A", "x (2)", "ms (2)"): "–", ("B", "y", "s"): "4"}
    bench_figures.write(data, bench_figures.parsed("### A\n| | ms |\n|-|-|\n| z | 5 |\n".split("\n")))
    assert bench_figures.read(data) == {("A", "z", "ms"): "5", ("B", "y", "s"): "4"}
    assert list(bench_figures.read(data))[0][0] == "A"
    page = second.replace("4", "old")
    assert bench_figures.updated(page, bench_figures.read(data)) == second
    with pytest.raises(KeyError):
        bench_figures.updated(first, bench_figures.read(data))


def update(page):
    """Writes what the commands of a page print now."""
    text = page.read_text()
    if page.name == "README.md":
        text = FIGURES.sub(lambda match: match[1] + figures(), text)
    if page == ROOT / "docs/benchmarks.md":
        text = bench_figures.updated(text, bench_figures.read(ROOT / "docs/benchmarks.tsv"))
    blocks = REPLAY.findall(text)
    if blocks:
        with Program(blocks[0][0]) as program:
            old = text
            for script, block in blocks:
                new = []
                for line, _ in commands_of(block):
                    command = program.command(line, old)
                    printed = program.usual(command).rstrip("\n")
                    new.append("$ %s\n%s\n" % (command.replace("\n", "\n> "), printed))
                text = text.replace("<!-- replay: %s -->\n```console\n%s```" % (script, block),
                                    "<!-- replay: %s -->\n```console\n%s```" % (script,
                                                                                "\n".join(new)))
    for folder, block in RECORDED.findall(text):
        new = ["$ %s\n%s\n" % (line.replace("\n", "\n> "), "\n".join(shortened(
            run_recorded(folder, line), shown.rstrip("\n").split("\n")))) for line, shown in commands_of(block)]
        text = text.replace(block, "\n".join(new))
    if text != page.read_text():
        page.write_text(text)
        print("%s: written" % name_of(page))


if __name__ == "__main__":
    for each in PAGES:
        update(each)
    sys.exit(0)
