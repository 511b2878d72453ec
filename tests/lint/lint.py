#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what the compiler does not: the rules of docs/architecture.md.

Each check is a function that yields findings; `lint.py CHECK…` runs some of
them, without names all.  A check whose tool is not installed, or is one that
judges otherwise, is skipped and says so; everything else fails the run.
"""

import argparse
import ast
import collections
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))

import results  # noqa: E402

# Rooms in their order: each may include from itself and those before it. Arrows point one way.
ORDER = ("base", "target", "dwarf", "python", "values", "dump", "inference", "injector", "profile", "rings", "judge", "control",
         "sql", "lib", "command", "remote", "cluster", "clickhouse", "gateway", "cli")
ROOMS = {name: set(ORDER[:number + 1]) for number, name in enumerate(ORDER)}
# Loaded into the target: nothing else of ours is.
ROOMS["agent"] = {"agent"}
# What both sides include, and no more of each other.
SHARED = re.compile(r"agent/\w+\.h|base/way\.h")
# A third-party header is included in one room only; tests may use all of them.
CONTAINED = {
    r"(libelf|gelf)\.h|elfutils/.*": ("dwarf",),
    r"(libdwarf.*/)?(libdwarf|dwarf)\.h": ("dwarf",),
    r"bfd\.h|demangle\.h|libiberty(/.*)?\.h": ("dwarf",),
    # Debug sections, snapshots and cores, and chunks of samples.
    r"(zstd|zlib|lzma)\.h|lzma/.*": ("base", "dwarf", "target", "profile", "rings"),
    r"jansson\.h": ("cluster", "gateway"),
    r"curl/.*": ("remote",),
    r"microhttpd\.h": ("gateway",),
    r"nettle/.*": ("remote",),
    r"pcre2\.h": ("base",),
    # Queries, and recordings, which are databases.
    r"sqlite3(ext)?\.h": ("sql", "profile"),
}
# Libraries never print, exit or install signal handlers.
PROGRAMS = ("control", "command", "remote", "cluster", "clickhouse", "gateway", "cli")
INSIDE = ("agent",)
LIBRARIES = tuple(name for name in ORDER if name not in PROGRAMS) + INSIDE
FORBIDDEN_CALLS = re.compile(
    r"(?<![\w.>])(printf|fprintf|vprintf|vfprintf|dprintf|puts|putchar|perror|exit|_exit|abort|"
    r"signal|sigaction)\s*\(")
# The same by a stream or a descriptor that is named; one that the caller gave may be written to.
FORBIDDEN_STREAMS = re.compile(
    r"(?<![\w.>])(?:((?:fputs|fputc|putc|fwrite)(?:_unlocked)?)\s*\([^;{}]*,\s*(?:stdout|stderr)\s*\)|"
    r"(p?writev?|SYS_p?writev?)\s*[(,]\s*(?:1|2|STDOUT_FILENO|STDERR_FILENO|fileno\s*\(\s*(?:stdout|stderr)\s*\))\s*,)")

READS_ENVIRONMENT = re.compile(r"(?<!\w)((?:secure_)?getenv)\s*\(")
READS_IN_PYTHON = re.compile(r"environ(?:\.\w+\(|\[)\s*[\"']PROB")
STARTS_UP = ("package/probing_startup.py", "package/probing/launch/sitecustomize.py")  # read, and take out, their own
# Only one file starts programs, so that a name which somebody else chose is never their option.
STARTS_PROGRAMS = re.compile(r"(?<![\w.>])(exec[vl]p?e?|execveat|fexecve|posix_spawnp?|system|popen|wordexp)\s*\(")

MAX_FILE = 800
# Of a folder's own: lines of C, and C files. Generated tables of layouts do not count.
MAX_LINES, MAX_SOURCES = 6000, 25
# Modules that include each other in a circle: a change of one may mean one of all.
MAX_KNOT = 3
MAX_FUNCTION = 60
MAX_BYTES = 2000000  # of a file
# Words, as `wc -w` counts them: of all pages together, generated ones too, and of those that grow most easily.
MAX_WORDS = 70000
MAX_WORDS_OF = {"README.md": 1100, "docs/guide.md": 6000, "docs/profiling.md": 2500, "docs/troubleshooting.md": 2500,
                "docs/debuggers.md": 2500, "docs/security.md": 2000, "docs/benchmarks.md": 2000,
                "docs/cluster.md": 2000, "docs/json.md": 2000, "docs/faults.md": 1500}
NO_SPDX = re.compile(
    r"(^|/)(LICENSE|\.gitignore|\.gitattributes)$|\.(json|lock|bin|core|snapshot|png|svg|zst|gz|xz|profile)$"
    r"|(^|/)(corpus|data)/|^COPYING")
SOURCES = (".c", ".h")
# Folders that .gitignore names.
NOT_OURS = re.compile(r"build|build-(?!aux$).*|__pycache__|\.pytest_cache|\.git|node_modules|dist|generated")
# The version whose format the sources have: others format the same a little differently.
CLANG_FORMAT = "14"
# What a version of codespell takes for mistakes: agen.asend(), formats of struct.unpack(), "%swith",
# ".format nd", SME of aarch64, "caf\xe9".
NO_MISTAKES = ("nd", "asend", "iif", "swith", "sme", "caf")


class Tree:
    """The files that belong to the repository, below `root`."""

    def __init__(self, root, cc="cc", cflags=()):
        self.root = pathlib.Path(root)
        self.cc = cc
        self.cflags = list(cflags)
        try:
            out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"],
                                 cwd=self.root, capture_output=True, check=True, text=True).stdout
            names = [name for name in out.split("\0") if name]
        except (OSError, subprocess.CalledProcessError):
            names = list(self.unpacked())
        self.names = sorted(name for name in names if (self.root / name).is_file())

    def unpacked(self):
        """The files of a tree that git does not know: all but what is built there."""
        for folder, folders, files in os.walk(self.root):
            folders[:] = [each for each in folders if not NOT_OURS.fullmatch(each)]
            yield from (os.path.relpath(os.path.join(folder, name), self.root) for name in files)

    def text(self, name):
        try:
            return (self.root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return None

    def sources(self, suffixes=SOURCES):
        return [name for name in self.names if name.endswith(suffixes)]

    def scripts(self, interpreter, suffix):
        """Files that are run by an interpreter: by their suffix or first line."""
        for name in self.names:
            if name.endswith(suffix):
                yield name
            elif "." not in os.path.basename(name):
                first = (self.text(name) or "").split("\n", 1)[0]
                if first.startswith("#!") and re.search(interpreter, first):
                    yield name


def room(name):
    return name.split("/", 1)[0]


def without_comments(text):
    """C source with comments and string contents blanked, lines kept."""
    def blank(match):
        found = match.group(0)
        return '""' if found[0] in "\"'" else "\n" * found.count("\n")
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def check_includes(tree):
    """Arrows between folders, and third-party headers in one folder only"""
    for name in tree.sources():
        here = room(name)
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            quoted, header = match.group(1) == '"', match.group(2)
            there = room(header)
            where = f"{name}:{number}"
            if quoted and here in ROOMS and "/" in header and there not in ROOMS[here] and \
                    not SHARED.fullmatch(header):
                yield f"{where}: {here}/ may not use {there}/ ({header})"
            if quoted and not (tree.root / header).is_file() and \
                    not (tree.root / name).parent.joinpath(header).is_file() and \
                    not header.endswith(".inc"):
                yield f"{where}: {header} does not exist"
            for pattern, only in CONTAINED.items():
                if re.fullmatch(pattern, header) and here not in (*only, "tests"):
                    places = " and ".join(f"{name}/" for name in only) or "tests/"
                    yield f"{where}: <{header}> belongs into {places} only"


def arrows(tree, part):
    """Each part of our rooms, with the others that its files include from; `part` finds it by a file's name."""
    found = {}
    for name in tree.sources():
        if room(name) in ROOMS:
            headers = re.findall(r'^\s*#\s*include\s*"([^"]+/[^"/]+)"', tree.text(name), re.M)
            found.setdefault(part(name), set()).update(part(each) for each in headers if room(each) in ROOMS)
    return {here: others - {here} for here, others in found.items()}


def reachable(found):
    """Each part with all that its arrows lead to: itself, if that is a circle."""
    def walk(start):
        seen, todo = set(), [start]
        while todo:
            for there in found.get(todo.pop(), ()):
                if there not in seen:
                    seen.add(there)
                    todo.append(there)
        return seen
    return {here: walk(here) for here in found}


def check_circles(tree):
    """Folders of a room do not include from each other in a circle"""
    found = arrows(tree, os.path.dirname)
    reached = reachable(found)
    for here in sorted(found):
        for there in sorted(found[here]):
            if here < there and here in reached.get(there, ()):
                yield f"{here}/ includes from {there}/, which includes from it again"


def module(name):
    """A file's name without what it ends in; NAME_private.h belongs to NAME."""
    return os.path.splitext(name)[0].removesuffix("_private")


def check_knots(tree):
    """Few modules include each other in a circle"""
    reached = reachable(arrows(tree, module))
    for name in sorted(reached):
        knot = sorted(each for each in reached[name] if name in reached.get(each, ()))
        if len(knot) > MAX_KNOT and name == knot[0]:
            yield f"{', '.join(knot)}: {len(knot)} modules include each other in a circle, over {MAX_KNOT}"


# How a header says that it is not for everybody. Tests may include all.
INTERNAL = re.compile(r"\bInternal to ((?:[\w-]+/)+)\.")
INTERNAL_SOMEHOW = re.compile(r"\b(?:internal|private) to\b", re.I)


def check_internal(tree):
    """Headers that are internal to a folder are included in that folder only"""
    folder_of = {}
    for name in tree.sources((".h",)):
        about = re.search(r"@file(.*?)\*/", tree.text(name), re.S) if room(name) in ROOMS else None
        words = re.sub(r"\n\s*\*\s*", " ", about[1]) if about else ""
        said = INTERNAL.search(words)
        if said:
            folder_of[name] = said[1]
        if said and not name.startswith(said[1]):
            yield f"{name}: is internal to {said[1]} and lies elsewhere"
        elif not said and INTERNAL_SOMEHOW.search(words):
            yield f"{name}: say 'Internal to FOLDER/.', with the folder's path"
    for name in tree.sources():
        for header in re.findall(r'^\s*#\s*include\s*"([^"]+)"', tree.text(name), re.M):
            if room(name) != "tests" and not name.startswith(folder_of.get(header, "")):
                yield f"{name}: {header} is internal to {folder_of[header]}"


def check_kinds(tree):
    """Other folders than target/ ask for capabilities of a target, not for its kind"""
    header = "target/target.h"
    declared = re.search(r"enum prb_target_kind \{(.*?)\}", tree.text(header), re.S) \
        if header in tree.names else None
    names = re.findall(r"PRB_TARGET_\w+", declared.group(1)) if declared else []
    asked = re.compile(r"\b(" + "|".join([*names, r"target(->|\.)kind\s*[=!]="]) + r")")
    for name in tree.sources():
        if room(name) in ("target", "tests"):
            continue
        for number, line in enumerate(without_comments(tree.text(name)).split("\n"), 1):
            if asked.search(line):
                yield f"{name}:{number}: the kind of a target is for its name only; " \
                    "capabilities are in target/target.h"


def calls(tree, pattern, rooms, but):
    """Where C code of these rooms calls what the pattern finds, but for one file: place, function."""
    for name in tree.sources():
        if room(name) not in rooms or name == but:
            continue
        text = without_comments(tree.text(name))
        for match in pattern.finditer(text):
            number = text.count("\n", 0, match.start(match.lastindex)) + 1
            yield f"{name}:{number}", match[match.lastindex] + "()"


def check_libraries(tree):
    """Libraries never print, exit or install signal handlers"""
    asked_for = "agent/crash/crash.c"  # its handlers, and the line that names the record
    for place, call in calls(tree, FORBIDDEN_CALLS, LIBRARIES, asked_for):
        yield f"{place}: a library may not call {call}"
    for place, call in calls(tree, FORBIDDEN_STREAMS, LIBRARIES, asked_for):
        yield f"{place}: a library may not call {call} for stdout or stderr"


def check_guards(tree):
    """A target that a function opens is ended by its guard, on every way out"""
    for name in tree.sources((".c",)):
        text = without_comments(tree.text(name)) if room(name) in ORDER else ""
        for match in re.finditer(r"^\s+struct prb_target \*(\w+)(?: = NULL)?[;,]", text, re.M):
            function = text[match.end():text.find("\n}\n", match.end())]
            if re.search(r"\bprb_target_destroy\(%s\)" % match[1], function):
                yield f"{name}:{text.count(chr(10), 0, match.start(1)) + 1}: {match[1]} is to be prb_auto_target"


def check_tolerated(tree):
    """What prb_error_tolerate() may set starts as false"""
    for name in tree.sources((".c",)):
        text = without_comments(tree.text(name)) if room(name) in ORDER else ""
        for match in re.finditer(r"\bprb_error_tolerate\([^;]*,\s*&(\w+)\)+;", text):
            function = text[text.rfind("\n{\n", 0, match.start()):match.start()]
            starts = re.findall(r"\bbool\b[^;]*?\b%s\b([^;,]*)" % match[1], function)
            if starts and "=" not in starts[-1]:
                yield f"{name}:{text.count(chr(10), 0, match.start(1)) + 1}: {match[1]} is to start as false"


def check_environment(tree):
    """What is loaded into a target obeys no environment of another user"""
    for place, _ in calls(tree, READS_ENVIRONMENT, INSIDE, "agent/inside/environment.c"):
        yield f"{place}: use prba_environment(): the program may have the rights of somebody else"
    for name in tree.sources((".py",)):
        for number, line in enumerate((tree.text(name) or "").split("\n"), 1):
            if room(name) in ("package", *INSIDE) and name not in STARTS_UP and READS_IN_PYTHON.search(line):
                yield f"{name}:{number}: use probing_startup.variable(): Python may ignore the environment"


def check_programs(tree):
    """Programs are started by command/start.c alone"""
    for place, call in calls(tree, STARTS_PROGRAMS, (*ORDER, *INSIDE), "command/start.c"):
        yield f"{place}: {call} is for command/start.c, whose callers tests/live/attacks/test_started_programs.py lists"


# Who may make files, name them or change their modes: all else calls base/new_file.h, for a file that
# is named by the user, and base/own_file.h, for one in a folder of ours. Each with what it may, and why.
WRITERS = {
    "base/new_file.c": ("make name", "files that the user names"),
    "package/link/musl.c": ("name", "the function itself, where musl has none"),
    "base/way.h": ("folder", "what is missing on the way to a folder of ours"),
    "base/own_file.c": ("make name folder mode", "folders of ours, and files in them; the mode of those it made"),
    "agent/inside/own_folder.c": ("folder", "the same in the target, which has no base/"),
    "agent/rings/create.c": ("make name", "in the target, in a folder of agent/inside/own_folder.h"),
    "agent/crash/file.c": ("make name", "in the target while it crashes, in a folder of agent/inside/own_folder.h"),
    "agent/socket/listen.c": ("mode", "of the socket that it has made, in a folder of agent/inside/own_folder.h"),
    "profile/store/write/statements.c": ("database", "opens the file that base/new_file.c has made"),
    "profile/store/load/database.c": ("database", "reads only"),
    "cli/commands/export.c": ("mode", "of its own new file, which others are to read"),
    "control/embedded.c": ("mode", "of its own new file, which the target is to read"),
    "gateway/targets/recordings.c": ("folder", "a new one, for recordings that the gateway removes"),
    "cli/commands/cluster/perf.c": ("folder", "a new one, for recordings that are removed"),
    "package/probing/_prompt.py": ("make folder", "the history, in a folder that is checked"),
}
WRITES = {
    "make": r"\bO_CREAT\b|\bopen(at)?\([^;]*\bO_TMPFILE\b|\b(mk(o?s)?temps?|creat|mknod(at)?|mkfifo(at)?|"
            r"symlink(at)?|tmpfile)\s*\(|\bf(re)?open(64)?\s*\([^;]*?,\s*\"[wa+]",
    "name": r"\b(rename(at2?)?|link(at)?)\s*\(|\bSYS_(rename|link)",
    "mode": r"\bf?chmod(at)?\s*\(|\b[fl]?chown(at)?\s*\(|\bSYS_\w*ch(mod|own)",
    "folder": r"\bmkdir(at)?\s*\(|\bSYS_mkdir|\bmkdtemp\s*\(",
    "database": r"\bsqlite3_open(_v2)?\s*\(\s*(?!\":memory:\")",
}
PYTHON_WRITES = {
    "make": r"\bO_CREAT\b|\bopen\([^()]*,\s*[\"'][wax]|\.write_(text|bytes)\(|\bmkstemp\(|\bNamedTemporaryFile\(",
    "name": r"\bos\.(rename|replace|link|symlink)\(",
    "mode": r"\bos\.\w*ch(mod|own)\(",
    "folder": r"\bos\.(mkdir|makedirs)\(",
}


def check_writers(tree):
    """Files are made and named in one place, which follows no link of another user"""
    used = {}
    for name in tree.sources((".c", ".h", ".py")):
        if room(name) in ("tests", "docs", "build-aux"):
            continue
        text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), tree.text(name) or "", flags=re.S)
        for what, pattern in (PYTHON_WRITES if name.endswith(".py") else WRITES).items():
            for found in re.finditer(pattern, text):
                used.setdefault(name, set()).add(what)
                if what not in WRITERS.get(name, ("",))[0].split():
                    line = text.count("\n", 0, found.start()) + 1
                    yield f"{name}:{line}: '{found[0].strip()}' belongs into base/new_file.c or base/own_file.c"
    for name, (may, _) in WRITERS.items():
        for what in set(may.split()) - used.get(name, set()) if name in tree.names else ():
            yield f"{name}: needs no '{what}' in WRITERS"


def check_headers(tree):
    """Each header compiles alone"""
    if not shutil.which(tree.cc):
        yield f"the compiler '{tree.cc}' is missing; 'make deps' installs it"
        return

    def compile_alone(name):
        command = [tree.cc, "-std=gnu11", "-D_GNU_SOURCE", "-I.", "-Wall", "-Wextra", "-Werror",
                   "-Wno-unused", *tree.cflags, "-fsyntax-only", "-x", "c", "-include", name,
                   "/dev/null"]
        result = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
        return name, result

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for name, result in pool.map(compile_alone, tree.sources((".h",))):
            if result.returncode:
                yield f"{name}: does not compile alone\n{result.stderr.rstrip()}"


def check_spdx(tree):
    """The licence stands at the top of every file"""
    for name in tree.names:
        text = None if NO_SPDX.search(name) else tree.text(name)
        if text and "SPDX-License-Identifier: GPL-3.0-or-later" not in \
                "\n".join(text.split("\n", 5)[:5]):
            yield f"{name}: no SPDX-License-Identifier in the first lines"


def check_format(tree):
    """clang-format has nothing to change"""
    names = tree.sources()
    tool = next((each for each in ("clang-format-" + CLANG_FORMAT, "clang-format")
                 if version(each) == CLANG_FORMAT), None)
    if names and not tool:
        yield Skipped(f"clang-format {CLANG_FORMAT} is not installed")
    elif names:
        yield from run_tool(tree, [tool, "--dry-run", "--Werror", *names])


def functions(text):
    """Yields (name, first line, lines) of each function; in our style braces stand in column 0."""
    start = title = None
    for number, line in enumerate(text.split("\n"), 1):
        if line == "{":
            start = number
        elif start and line.startswith("}"):
            yield title, start, number - start - 1
            start = None
        elif not start:
            match = re.match(r"[\w\s*]*?(\w+)\(", line)
            title = match.group(1) if match else title


def check_size(tree):
    """Files, functions and folders stay short"""
    lines_in, sources_in = collections.Counter(), collections.Counter()
    for name in tree.sources():
        text = tree.text(name)
        lines = text.count("\n")
        if room(name) != "tests" and not name.startswith("python/layout/tables/"):
            lines_in[os.path.dirname(name)] += lines
            sources_in[os.path.dirname(name)] += name.endswith(".c")
        if lines > MAX_FILE:
            yield f"{name}: {lines} lines, over {MAX_FILE}"
        for title, start, length in functions(without_comments(text)):
            if length > MAX_FUNCTION:
                yield f"{name}:{start}: {title}() has {length} lines, over {MAX_FUNCTION}"
    for counts, limit, what in (lines_in, MAX_LINES, "lines"), (sources_in, MAX_SOURCES, "C files"):
        for name, count in sorted(counts.items()):
            if count > limit:
                yield f"{name}/: {count} {what}, over {limit}: make two folders of it"


def check_large(tree):
    """No file is as large as what a crash leaves"""
    for name in tree.names:
        size = (tree.root / name).stat().st_size
        if size > MAX_BYTES:
            yield f"{name}: {size} bytes, over {MAX_BYTES}"


def check_pages(tree):
    """The pages are short: what the program says itself, or a header, they need not say"""
    pages = [name for name in tree.sources((".md",))
             if name.startswith("docs/") or name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    words = {name: len(tree.text(name).split()) for name in pages}
    for name in sorted(words.keys() & MAX_WORDS_OF.keys()):
        if words[name] > MAX_WORDS_OF[name]:
            yield f"{name}: {words[name]} words, over {MAX_WORDS_OF[name]}"
    if sum(words.values()) > MAX_WORDS:
        yield f"docs/: {sum(words.values())} words in all pages together, over {MAX_WORDS}"


def check_words(tree):
    """No reminders in the source, no spelling mistakes"""
    reminder = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    for name in tree.sources((".c", ".h", ".py", ".mk", ".sh")):
        for number, line in enumerate((tree.text(name) or "").split("\n"), 1):
            if reminder.search(line):
                yield f"{name}:{number}: {line.strip()}"
    texts = [name for name in tree.names
             if not NO_SPDX.search(name) and tree.text(name) is not None]
    if texts:
        yield from run_tool(tree, ["codespell", "--builtin", "clear",
                                   "--ignore-words-list", ",".join(NO_MISTAKES), *texts])


def bare_programs(syntax):
    """Yields the lines where a command of a shell is made with support.BINARY as it is."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            if re.search(r"[;&|>]|%s [a-z]+\Z", node.left.value) and any(
                    isinstance(each, ast.Attribute) and each.attr == "BINARY" for each in values):
                yield node.lineno


def check_scripts(tree):
    """Shell and Python scripts; test files have names of their own, by which pytest knows them"""
    tests = {}
    for name in tree.sources((".py",)):
        if name.startswith("tests/") and name.rsplit("/", 1)[-1].startswith("test_"):
            first = tests.setdefault(name.rsplit("/", 1)[-1], name)
            if first != name:
                yield f"{name}: has the name of {first}"
    shell = list(tree.scripts(r"\b(ba|da)?sh\b", ".sh"))
    if shell:
        yield from run_tool(tree, ["shellcheck", *shell])
    for name in tree.scripts(r"\bpython", ".py"):
        try:
            syntax = ast.parse(tree.text(name), name)
            for line in bare_programs(syntax) if name.startswith("tests/") else ():
                yield f"{name}:{line}: a shell takes BINARY apart where its path has spaces: shlex.quote() it"
        except SyntaxError as error:
            # Programs that the tests run as targets may be written for another version.
            if "/programs/" not in name:
                yield f"{name}:{error.lineno}: {error.msg}"


# What the plugin of debuggers may import: their own Python is what runs it, whichever it is.
PLUGIN_MODULES = {"ast", "atexit", "contextlib", "ctypes", "importlib", "importlib.util", "io", "json", "os",
                  "probing", "probing.target", "probing_package", "re", "shlex", "signal", "struct", "sys",
                  "tempfile", "threading", "time", "traceback"}
PLUGIN_SYNTAX = (3, 6)
FACES = {"gdb": "gdbplugin/gdb_", "lldb": "gdbplugin/lldb_"}


def imports(syntax):
    """Yields (line, module, how many dots stand before it) of each import."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, 0
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or "", node.level


def check_plugin(tree):
    """The plugin of debuggers: its core knows no debugger; old Pythons can read it and the package"""
    for name in tree.names:
        if not name.startswith(("gdbplugin/", "package/")) or not name.endswith(".py"):
            continue
        try:
            syntax = ast.parse(tree.text(name), name, feature_version=PLUGIN_SYNTAX)
        except SyntaxError as error:
            yield f"{name}:{error.lineno}: not for Python {'%d.%d' % PLUGIN_SYNTAX}: {error.msg}"
            continue
        for line, module, dots in imports(syntax) if name.startswith("gdbplugin/") else ():
            where = f"{name}:{line}"
            if dots:
                # One dot is the file's own folder; those below core/ may not leave it.
                if name.startswith("gdbplugin/core/") and dots > name.count("/") - 1:
                    yield f"{where}: the core may not use the faces"
            elif module in FACES:
                if not name.startswith(FACES[module]):
                    yield f"{where}: {module} is for {FACES[module]}*.py only"
            elif module not in PLUGIN_MODULES:
                yield f"{where}: {module} is not among what the plugin may import"


# What is put into this file shares the names of one module in the target. Two are never loaded together.
AGENT_MODULE = "agent/eval/bootstrap.c"
ALTERNATIVES = {"agent/trace/monitoring.py", "agent/trace/tracing.py"}


def defined(statement):
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    return [each.id for target in getattr(statement, "targets", ()) for each in ast.walk(target)
            if isinstance(each, ast.Name)]


def check_agent(tree):
    """Parts of the agent in Python do not take each other's names"""
    owners = {}
    parts = tree.text(AGENT_MODULE) if AGENT_MODULE in tree.names else ""
    for name in re.findall(r'\.incbin \\"(?:texts/)?(\w[\w/]*\.py)', parts):
        for line, what in [(each.lineno, what) for each in ast.parse(tree.text(name)).body
                           for what in defined(each)]:
            owner = owners.setdefault(what, name)
            if owner != name and {owner, name} != ALTERNATIVES:
                yield f"{name}:{line}: {what} is a name of {owner}, too"


# What others have already, by the names that a clone may know it by.
LANDED = ("@{upstream}", "origin/HEAD", "origin/main", "origin/master")
SUBJECT = re.compile(r"[a-z][\w./-]*(, [a-z][\w./-]*)*: \S.*[^.\s]")
MAX_SUBJECT = 72


def git(tree, *words):
    """What git prints, or None if it cannot."""
    try:
        return subprocess.run(["git", *words], cwd=tree.root, capture_output=True, check=True,
                              text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def new_commits(tree):
    """(hash, subject) of the commits that have not landed, or of the last if that is not known."""
    landed = next((name for name in LANDED if git(tree, "merge-base", name, "HEAD")), None)
    what = [f"{landed}..HEAD"] if landed else ["-1"]
    for line in (git(tree, "log", "--no-merges", "--format=%h %s", *what) or "").splitlines():
        yield line.split(" ", 1)


def check_commits(tree):
    """Subjects of new commits: "area: what changed", and short"""
    for commit, subject in new_commits(tree):
        if not SUBJECT.fullmatch(subject):
            yield f"{commit}: '{subject}' is not 'area: what changed', without a full stop"
        elif len(subject) > MAX_SUBJECT:
            yield f"{commit}: the subject has {len(subject)} columns, over {MAX_SUBJECT}"


class Skipped(str):
    """Yielded by a check in place of findings: why it is not made here."""


def version(command):
    """The first number of a tool's version; None if it is not installed."""
    if not shutil.which(command):
        return None
    said = subprocess.run([command, "--version"], capture_output=True, text=True).stdout
    return (re.search(r"version (\d+)", said) or [None, None])[1]


def run_tool(tree, command):
    if not shutil.which(command[0]):
        yield Skipped(f"{command[0]} is not installed")
        return
    result = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
    if result.returncode:
        yield (result.stdout + result.stderr).rstrip()


CHECKS = {name.removeprefix("check_"): function for name, function in sorted(globals().items())
          if name.startswith("check_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checks", nargs="*", metavar="CHECK",
                        help="one of: " + ", ".join(CHECKS))
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--cflags", default="", type=shlex.split)
    options = parser.parse_args()
    unknown = set(options.checks) - set(CHECKS)
    if unknown:
        parser.error("no check named " + ", ".join(sorted(unknown)))

    tree = Tree(options.root, options.cc, options.cflags)
    counts = results.Counts()
    for name in options.checks or CHECKS:
        said = list(CHECKS[name](tree))
        skipped = [each for each in said if isinstance(each, Skipped)]
        findings = [each for each in said if not isinstance(each, Skipped)]
        for line in findings + [f"note: {reason}; what it checks is not checked" for reason in skipped]:
            print(line)
        print(f"{'FAIL' if findings else 'ok  '} {name}: {CHECKS[name].__doc__}", flush=True)
        counts.skipped.update(map(str, skipped))
        counts.failed += [f"lint: {name}"] if findings else []
        counts.passed += not said
    counts.write("lint")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
