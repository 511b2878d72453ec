# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks find what they are for, in a small tree that breaks one rule at a time."""

import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import lint  # noqa: E402

SPDX = "/* SPDX-License-Identifier: GPL-3.0-or-later */\n"


@pytest.fixture
def tree(tmp_path):
    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return lint.Tree(tmp_path)
    return make


def findings(check, tree):
    found = list(lint.CHECKS[check](tree))
    for each in found:
        if isinstance(each, lint.Skipped):
            pytest.skip(each)
    return found


@pytest.mark.parametrize("check, name, text, what", [
    ("includes", "dwarf/a.c", '#include "injector/b.h"\n', "may not use injector/"),
    ("includes", "injector/a.c", '#include "cli/b.h"\n', "may not use cli/"),
    ("includes", "agent/a.c", '#include "dwarf/b.h"\n', "may not use dwarf/"),
    ("includes", "cli/a.c", "#include <gelf.h>\n", "belongs into dwarf/"),
    ("includes", "cli/a.c", "#include <libdwarf/libdwarf.h>\n", "belongs into dwarf/"),
    ("includes", "dwarf/a.c", " # include <jansson.h>\n", "belongs into cluster/ and gateway/"),
    ("includes", "cli/a.c", "#include <pcre2.h>\n", "belongs into base/"),
    ("includes", "cli/a.c", '#include "cli/missing.h"\n', "does not exist"),
    ("libraries", "dwarf/a.c", "void f(void)\n{\n\tprintf(\"x\");\n}\n", "printf()"),
    ("libraries", "injector/a.c", "void f(void)\n{\n\texit (1);\n}\n", "exit()"),
    ("libraries", "dump/a.c", "fputs(text, stderr);\n", "a.c:1: a library may not call fputs() for std"),
    ("libraries", "dump/a.c", "fputc('x', stdout);\n", "fputc()"),
    ("libraries", "dump/a.c", "x();\nfwrite(f(a, b), 1, n,\n       stdout);\n", "a.c:2: a library may not call fwrite()"),
    ("libraries", "dump/a.c", "write(2, text, n);\n", "write()"),
    ("libraries", "dump/a.c", "writev(STDOUT_FILENO, parts, 2);\n", "writev()"),
    ("libraries", "dump/a.c", "write(fileno(stderr), text, n);\n", "write()"),
    ("libraries", "agent/a.c", "prba_raw(SYS_write, STDERR_FILENO, text, n);\n", "SYS_write()"),
    ("guards", "cli/a.c", "void f(void)\n{\n\tstruct prb_target *t;\n\n\tx(&t);\n\tprb_target_destroy(t);\n}\n",
     "a.c:3: t is to be prb_auto_target"),
    ("tolerated", "cli/a.c", "void f(void)\n{\n\tbool a = true, bad;\n\n\tPRB_TRY(prb_error_tolerate(x(&t), &bad));\n}\n",
     "a.c:5: bad is to start as false"),
    ("writers", "cli/a.c", "int fd = open(p, O_WRONLY | O_CREAT, 0600);\n", "a.c:1: 'O_CREAT'"),
    ("writers", "cli/a.c", "\nFILE *f = fopen(p, \"we\");\n", "a.c:2: 'fopen"),
    ("writers", "cli/a.c", "rename(a, b);\n", "'rename('"),
    ("writers", "agent/a.c", "syscall(SYS_renameat2, f, a, f, b, 0);\n", "'SYS_rename'"),
    ("writers", "cli/a.c", "fchmod(fd, 0700);\n", "'fchmod('"),
    ("writers", "agent/a.c", "prba_raw(SYS_fchmod, fd, 0700L);\n", "'SYS_fchmod'"),
    ("writers", "cli/a.c", "mkdir(p, 0700);\n", "'mkdir('"),
    ("writers", "cli/a.c", "mkostemp(p, O_CLOEXEC);\n", "'mkostemp('"),
    ("writers", "cli/a.c", "open(p,\n     O_TMPFILE | O_RDWR);\n", "O_TMPFILE"),
    ("writers", "sql/a.c", "sqlite3_open_v2(path, &db, 0, NULL);\n", "'sqlite3_open_v2('"),
    ("writers", "package/a.py", "with open(path, 'w') as file:\n", "open(path"),
    ("writers", "package/a.py", "os.replace(a, b)\n", "os.replace("),
    ("writers", "base/new_file.c", "int x;\n", "needs no 'make'"),
    ("headers", "dwarf/a.h", "size_t prb_size(void);\n", "does not compile alone"),
    ("spdx", "dwarf/a.c", "int x;\n", "no SPDX"),
    ("size", "dwarf/a.c", "int x;\n" * 801, "801 lines"),
    ("size", "dwarf/a/a.c", "int x;\n" * 6001, "dwarf/a/: 6001 lines, over 6000"),
    ("size", "dwarf/a.c", "int f(void)\n{\n" + "\t;\n" * 61 + "}\n", "f() has "),
    ("words", "dwarf/a.c", "/* TO" "DO: more */\n", "TO" "DO"),
    ("plugin", "gdbplugin/core/a.py", "import gdb\n", "gdb is for"),
    ("plugin", "gdbplugin/core/commands/a.py", "from ...gdb_face import FACE\n", "the faces"),
    ("plugin", "gdbplugin/gdb_face.py", "import requests\n", "may import"),
    ("plugin", "gdbplugin/core/a.py", "if (a := 1):\n    pass\n", "not for Python 3.6"),
    ("scripts", "tests/a.py", "def f(:\n", "a.py:1"),
    ("scripts", "tests/a.py", "run(['sh', '-c', '%s; exit 0' % support.BINARY])\n", "shlex.quote() it"),
])
def test_finds(tree, check, name, text, what):
    found = findings(check, tree({name: text}))
    assert any(what in each for each in found), found


@pytest.mark.parametrize("text", ["fwrite(text, 1, n, stream);\n", "fputs(text, f);\nx(stderr);\n",
                                  "write(fd, text, n);\n", "write(12, text, n);\n", "s->write(1, text);\n"])
def test_libraries_may_write_to_what_they_are_given(tree, text):
    assert not findings("libraries", tree({"dump/a.c": text}))


def test_finds_large_files(tree):
    assert not findings("large", tree({"data": "x" * lint.MAX_BYTES}))
    assert findings("large", tree({"core": "x" * (lint.MAX_BYTES + 1)})) == ["core: 2000001 bytes, over 2000000"]


def test_finds_full_folders(tree):
    files = {"dwarf/a/%d.%s" % (i, end): SPDX for i in range(25) for end in ("c", "h")}
    assert not findings("size", tree(files))
    assert findings("size", tree({"dwarf/a/more.c": SPDX})) == [
        "dwarf/a/: 26 C files, over 25: make two folders of it"]


def test_finds_two_tests_of_one_name(tree):
    files = {"tests/live/dump/test_a.py": "x = 1\n", "tests/live/judge/test_b.py": "x = 1\n"}
    assert not findings("scripts", tree(files))
    assert findings("scripts", tree({"tests/live/judge/test_a.py": "x = 1\n"})) == [
        "tests/live/judge/test_a.py: has the name of tests/live/dump/test_a.py"]


def test_finds_long_pages(tree):
    files = {"README.md": "word " * 1100, "docs/guide.md": "word " * 6000, "docs/new/page.md": "word " * 62900,
             "tests/notes.md": "word " * 1000}
    assert not findings("pages", tree(files))
    assert findings("pages", tree(dict(files, **{"README.md": "| word |\n" * 367, "docs/guide.md": "one\n" * 5999}))) == [
        "README.md: 1101 words, over 1100"]
    assert findings("pages", tree(dict(files, **{"CHANGELOG.md": "word"}))) == [
        "docs/: 70001 words in all pages together, over 70000"]


def test_finds_names_that_two_parts_of_the_agent_define(tree):
    found = findings("agent", tree({
        "agent/eval/bootstrap.c": '".incbin \\"agent/trace/breaks.py\\"\\n"\n".incbin \\"agent/trace/calls.py\\"\\n"\n',
        "agent/trace/breaks.py": "PARTS = 1\n", "agent/trace/calls.py": "PARTS = 2\n", "agent/other.py": "PARTS = 3\n"}))
    assert found == ["agent/trace/calls.py:1: PARTS is a name of agent/trace/breaks.py, too"]


@pytest.mark.parametrize("check", lint.CHECKS)
def test_accepts(tree, check):
    source = SPDX + ('#include "dwarf/a.h"\n\n#include <stdio.h>\n\n/* printf() is not for us. */\n'
                     "int prb_a(char *s)\n{\n\treturn snprintf(s, 2, \"exit(1)\");\n}\n")
    assert findings(check, tree({
        "dwarf/a.c": source,
        "dwarf/a.h": SPDX + "int prb_a(char *s);\n",
        "injector/b.c": SPDX + '#include "dwarf/a.h"\n',
        "tests/unit/c.c": SPDX + "#include <jansson.h>\n",
        ".clang-format": (lint.ROOT / ".clang-format").read_text(),
    })) == []


def test_finds_circles(tree):
    """Also those over a third folder, and those of a folder and one within it."""
    files = {"dwarf/a/a.h": SPDX + '#include "dwarf/b/b.h"\n',
             "dwarf/b/b.h": SPDX + '#include "dwarf/c/c.h"\n',
             "dwarf/c/c.h": SPDX + '#include "dwarf/a/a.h"\n',
             "target/target.c": SPDX + '#include "target/snapshot/snapshot.h"\n',
             "target/snapshot/snapshot.h": SPDX + '#include "target/target.h"\n'}
    found = findings("circles", tree(files))
    assert found and "dwarf/a/ includes from dwarf/b/" in found[0]
    assert [text for text in found if "target/ includes from target/snapshot/" in text]


def ring(count, name="sql/engine/%d"):
    """Modules, each of which includes the next one, and the last one the first: some in their .c file."""
    return {name % i + (".c" if i % 2 else ".h"): SPDX + '#include "%s.h"\n' % (name % ((i + 1) % count))
            for i in range(count)}


def test_finds_knots(tree):
    found = findings("knots", tree({**ring(3), **ring(4, "dump/read/%d"), "dump/a.c": '#include "dump/read/0.h"\n'}))
    assert found == ["dump/read/0, dump/read/1, dump/read/2, dump/read/3: "
                     "4 modules include each other in a circle, over 3"]


def test_a_private_header_is_part_of_its_module(tree):
    """Three modules in five files."""
    assert not findings("knots", tree({
        "sql/a.c": '#include "sql/a_private.h"\n', "sql/a_private.h": '#include "sql/b.h"\n',
        "sql/b.h": '#include "sql/c.h"\n', "sql/c.c": '#include "sql/c_private.h"\n',
        "sql/c_private.h": '#include "sql/a.h"\n'}))


def test_finds_internal_headers_that_others_include(tree):
    """Those in folders below may include it, and so may tests."""
    include = SPDX + '#include "sql/engine/a.h"\n'
    found = findings("internal", tree({
        "sql/engine/a.h": SPDX + "/**\n * @file Pages. Any thread. Internal to\n * sql/engine/.\n */\n",
        "sql/engine/b.c": include, "sql/engine/scans/c.c": include, "tests/unit/d.c": include,
        "sql/engines.c": include, "lib/e.h": include}))
    assert found == ["lib/e.h: sql/engine/a.h is internal to sql/engine/",
                     "sql/engines.c: sql/engine/a.h is internal to sql/engine/"]


@pytest.mark.parametrize("words, what", [
    ("Internal to sql/engine/.", None),
    ("Internal to sql/. Any thread.", None),
    ("Internal to dump/.", "lies elsewhere"),
    ("Pages; internal to sql/engine/.", "say 'Internal to FOLDER/.'"),
    ("Private to sql/engine/.", "say 'Internal to FOLDER/.'"),
    ("Internal to sql/engine.", "say 'Internal to FOLDER/.'"),
    ("Internal to the engine.", "say 'Internal to FOLDER/.'"),
])
def test_headers_say_in_one_way_that_they_are_internal(tree, words, what):
    found = findings("internal", tree({"sql/engine/a.h": SPDX + "/** @file %s */\n" % words}))
    assert [what in each for each in found] == ([True] if what else [])


def test_finds_kinds(tree):
    """The names of all kinds, but not of other things that are called alike; nor in target/."""
    header = SPDX + "enum prb_target_kind {\n\tPRB_TARGET_PROCESS,\n\tPRB_TARGET_CORE,\n};\n"
    found = findings("kinds", tree({
        "target/target.h": header,
        "target/a.c": "bool a = t->kind == PRB_TARGET_CORE;\n",
        "tests/unit/a.c": "bool a = t->kind == PRB_TARGET_CORE;\n",
        "dump/a.c": "/* PRB_TARGET_CORE */\nbool a = PRB_TARGET_ONE;\nputs(name(t->kind));\n",
        "dump/b.c": "int b;\nbool a = t->kind != PRB_TARGET_CORE;\n",
        "sql/c.c": "bool c = target->kind == 0;\n"}))
    assert [text.split(": ")[0] for text in found] == ["dump/b.c:2", "sql/c.c:1"]


def test_finds_environments_that_are_obeyed(tree):
    found = findings("environment", tree({
        "agent/a.c": "int a;\nb = getenv(name);\nc = secure_getenv(name);\nd = prba_environment(name);\n",
        "agent/inside/environment.c": "a = secure_getenv(name);\n", "cli/b.c": "b = getenv(name);\n",
        "package/probing/a.py": "import os\nos.environ.get('PROBING')\nos.environ['HOME']\nvariable('PROBING')\n",
        "package/probing_startup.py": "os.environ.get('PROBING')\n"}))
    assert [text.split(": ")[0] for text in found] == ["agent/a.c:2", "agent/a.c:3", "package/probing/a.py:2"]


def test_finds_programs(tree):
    found = findings("programs", tree({
        "command/start.c": "execv(path, words);\n",
        "gateway/a.c": "int a;\nexecvp(words[0], words);\nprb_execv(x);\n/* system(x) */\n",
        "remote/b.c": "failed = posix_spawn(ret, path, NULL, NULL, words, environ);\n",
        "tests/unit/a.c": "system(line);\n"}))
    assert [text.split(": ")[0] for text in found] == ["gateway/a.c:2", "remote/b.c:1"]


def test_finds_format(tree):
    bad = tree({".clang-format": (lint.ROOT / ".clang-format").read_text(),
                "dwarf/a.c": SPDX + "int  x ;\n"})
    assert "a.c:2" in findings("format", bad)[0]


def commit(folder, *subjects):
    for subject in subjects:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
                        "--allow-empty", "-m", subject], cwd=folder, check=True)


@pytest.mark.parametrize("subject, what", [
    ("sql: read what is there", None),
    ("cli, docs: say it in one sentence", None),
    ("dwarf/elf: read notes", None),
    ("Read what is there", "is not"),
    ("sql: read what is there.", "is not"),
    ("sql:", "is not"),
    ("sql: " + "x" * 68, "73 columns"),
])
def test_subjects(tmp_path, subject, what):
    """Of commits that are not in the clone's origin; without one, of the last."""
    origin, clone, shallow = (tmp_path / name for name in ("origin", "clone", "shallow"))
    subprocess.run(["git", "init", "-q", origin], check=True)
    commit(origin, "It was so before")
    subprocess.run(["git", "clone", "-q", origin, clone], check=True, capture_output=True)
    assert findings("commits", lint.Tree(clone)) == []
    commit(clone, subject, "tests: and one more")
    found = findings("commits", lint.Tree(clone))
    assert (what in found[0] if what else found == []), found
    commit(clone, subject)
    subprocess.run(["git", "clone", "-q", "--depth=1", "file://%s" % clone, shallow], check=True)
    assert findings("commits", lint.Tree(shallow)) == []  # nothing is new
    subprocess.run(["git", "remote", "remove", "origin"], cwd=shallow, check=True)
    assert bool(findings("commits", lint.Tree(shallow))) == bool(what)


def test_subjects_without_git(tree, tmp_path):
    assert findings("commits", tree({})) == []


def test_exit_status(tree, tmp_path):
    tree({"dwarf/a.c": "int x;\n"})
    command = [sys.executable, lint.__file__, "--root", str(tmp_path)]
    result = subprocess.run([*command, "spdx", "size"], capture_output=True, text=True)
    assert result.returncode == 1
    assert "FAIL spdx" in result.stdout and "ok   size" in result.stdout
    assert subprocess.run([*command, "size"], capture_output=True).returncode == 0
    assert subprocess.run([*command, "nonsense"], capture_output=True).returncode == 2
