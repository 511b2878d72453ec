# SPDX-License-Identifier: GPL-3.0-or-later
"""What make builds again, what it starts for that, and what it links."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A file without generated ones, and one of the library that the target loads.
OBJECTS = ("base/error.o", "agent/inside/status.o")


def run(command, status=0, **environment):
    # Started by a make, we are no part of it: nor are the variables that it was given.
    given = [word.partition("=")[0] for word in os.environ.get("MAKEFLAGS", "").split()]
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("MAKE", "MFLAGS")) and name not in given}
    done = subprocess.run([str(word) for word in command], cwd=ROOT, env={**kept, **environment}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(name="known")
def knows_the_system(tmp_path):
    """A folder that needs not find out anew what this machine has, which takes seconds."""
    build = pathlib.Path(os.environ.get("PROBING_BINARY", ROOT / "build" / "probing")).parent
    (tmp_path / "build").mkdir()
    for name in "compiler", "config.mk":
        if (build / name).exists():
            shutil.copy2(build / name, tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture(name="make")
def builds(known):
    """make(*words): builds two objects in a folder of its own; what was compiled."""
    def make(*words, status=0):
        return run(["make", f"O={known}", *words, *(f"{known}/{name}" for name in OBJECTS)], status).stdout.count("  CC ")
    return make


def test_what_is_compiled_again(make):
    assert make() == 2
    assert make() == 0
    assert make("WERROR=1") == 0, "it changes no object"
    assert make("CFLAGS=-O1") == 2
    assert make("CFLAGS=-O1") == 0
    assert make("CFLAGS=-O1", "SAN=undefined") == 2
    assert make() == 2


def test_asking_changes_nothing(make, tmp_path):
    assert make() == 2
    assert "gcc" in run(["make", "-n", "CFLAGS=-O1", f"O={tmp_path}/build", f"{tmp_path}/build/{OBJECTS[0]}"]).stdout
    make("-q", "CFLAGS=-O1", status=1)
    make("-q")
    assert make() == 0


def test_asking_before_anything_is_built(tmp_path):
    plan = run(["make", "-n", f"O={tmp_path}/new", "all"]).stdout
    assert f"-o {tmp_path}/new/probing" in plan
    assert not list(tmp_path.glob("new/**/*.o"))


def test_the_folder_by_another_name(make, tmp_path):
    assert make() == 2
    other = tmp_path / "other"
    other.symlink_to(tmp_path)
    run(["make", f"O={other}/build", *(f"{other}/build/{name}" for name in OBJECTS)])
    assert make() == 0


def test_another_compiler(make, tmp_path):
    compiler = tmp_path / "another-gcc"
    compiler.write_text('#!/bin/sh\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    assert make() == 2
    assert make(f"CC={compiler}") == 2


def test_warnings_are_errors_where_that_is_asked_for(make):
    assert make("CFLAGS=-Wtraditional") == 2
    make("CFLAGS=-Wtraditional -O1", "WERROR=1", status=2)


def test_nothing_to_do_starts_nothing(make, tmp_path):
    """make hands each command to $(SHELL), unless that is the usual one and the command is simple."""
    make()
    counter = tmp_path / "counter"
    counter.write_text(f'#!/bin/sh\necho "$2" >> {tmp_path}/started\nexec /bin/sh "$@"\n')
    counter.chmod(0o755)
    make(f"SHELL={counter}")
    started = (tmp_path / "started").read_text().splitlines() if (tmp_path / "started").exists() else []
    assert len(started) < 5, started


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("registry, folder", [("command/commands.inc", "cli/commands"),
                                              ("sql/tables/tables.inc", "sql/tables/process")])
def test_an_old_file_that_is_new_here_is_found(tmp_path, registry, folder):
    """Copied with its time, or written while make ran: it is older than what was made without it."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build", ".git", "node_modules", "__pycache__", "tests"))
    (tree / "tests").symlink_to(ROOT / "tests")
    name = {"cli": "command", "sql": "table"}[folder[:3]]
    make = ["make", "-C", tree, f"O={tmp_path}/build", f"{tmp_path}/build/{registry}"]
    run(make)
    place = tree / folder / "example.c"
    place.write_text(f"const struct prb_{name} prb_{name}_{folder.split('/')[-1]}_example = {{\n\t.rank = 71,\n}};\n")
    os.utime(place, (0, 0))
    run(make)
    assert "example)" in (tmp_path / "build" / registry).read_text()
    place.unlink()
    run(make)
    assert "example)" not in (tmp_path / "build" / registry).read_text()


def test_an_archive_that_does_not_link_is_not_used(tmp_path):
    """As libelf.a of elfutils 0.192, which calls functions that no package has."""
    source = tmp_path / "broken.c"
    source.write_text("int nobody_has_this(void); int elf_errno(void) { return nobody_has_this(); }\n")
    run(["gcc", "-c", "-o", tmp_path / "broken.o", source])
    run(["ar", "crs", tmp_path / "libelf.a", tmp_path / "broken.o"])
    found = run(["build-aux/probe", f"gcc -L{tmp_path}"])
    assert "probing: libelf is linked as a shared library: its archive lacks nobody_has_this\n" in found.stderr
    variables = dict(line.split(" := ", 1) for line in found.stdout.splitlines() if " := " in line)
    assert "-lelf" in variables["INJECT_LIBS"] and "-Bstatic -lelf" not in variables["INJECT_LIBS"]
    assert "elf" in variables["NO_ARCHIVE"].split()


def test_a_library_that_is_missing_is_named(tmp_path):
    """The compiler finds no jansson.h: a folder that comes first has one that cannot be."""
    (tmp_path / "jansson.h").write_text("#error it is not installed\n")
    found = run(["build-aux/probe", f"gcc -I{tmp_path}"], 1)
    assert found.stdout == "" or " := " not in found.stdout
    assert "\n  jansson (jansson.h)\n" in found.stderr and "apt-get install libjansson-dev\n" in found.stderr
