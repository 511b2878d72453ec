# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of C++ functions are short in text output, and complete on request."""

import json
import subprocess

import pytest

import environment
import tables
from support import Program, wait_for_all_asleep

SOURCE = """
#include <map>
#include <string>
#include <vector>
#include <unistd.h>

namespace store {
using Rows = std::map<std::string, std::vector<int>>;

__attribute__((noinline)) long hold(const Rows &rows, const std::string &name)
{
	char byte;
	long result = read(0, &byte, 1);
	__asm__ volatile("" ::"r"(&rows), "r"(&name) : "memory");
	return result;
}
}

extern "C" long start()
{
	store::Rows rows;
	long result = store::hold(rows, "x");
	__asm__ volatile("" ::: "memory");
	return result;
}
"""
STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
ROWS = ("std::map<{0}, std::vector<int, std::allocator<int> >, std::less<{0} >, std::allocator<std::pair"
        "<{0} const, std::vector<int, std::allocator<int> > > > > const&").format(STRING)
FULL = "store::hold(%s, %s const&)" % (ROWS, STRING)
SHORT = "store::hold(std::map<std::string, std::vector<int>> const&, std::string const&)"


@pytest.fixture(scope="module")
def held(tmp_path_factory, newest):
    """A process whose main thread is in store::hold()."""
    environment.need("g++")
    folder = tmp_path_factory.mktemp("names")
    (folder / "store.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-g", "-o", folder / "libstore.so",
                    folder / "store.cpp"], check=True)
    (folder / "hold.py").write_text("import ctypes\nprint('ready', flush=True)\n"
                                    "ctypes.CDLL(%r).start()\n" % str(folder / "libstore.so"))
    with Program([newest.exe, folder / "hold.py"], env=newest.env) as program:
        program.line()
        wait_for_all_asleep(program.pid, 1)
        yield program.pid


@pytest.mark.parametrize("command", [["backtrace"], ["debug", "--dump"], ["dump"]])
def test_text_shows_short_names(probing, held, command):
    text = probing(held, *command, "--native").out
    assert " %s  store.cpp:" % SHORT in text and "__cxx11" not in text
    text = probing(held, *command, "--native", "--full-names").out
    assert " %s  store.cpp:" % FULL in text and SHORT not in text


def test_json_has_both(probing, held):
    frames = json.loads(probing(held, "backtrace", "--native", "--json").out)["threads"][0]["frames"]
    names = {frame["func"]: frame.get("full_func") for frame in frames}
    assert names[SHORT] == FULL
    assert names["start"] is None and names["<module>"] is None
    assert not any("full_func" in frame for frame in frames if frame["func"] != SHORT)


def test_sql_has_both(held):
    rows = tables.query(held, "SELECT func, full_func FROM native.backtrace"
                              " WHERE func LIKE 'store::%' OR func IN ('start', '<module>')")
    assert [(row["func"], row["full_func"]) for row in rows] == [
        (SHORT, FULL), ("start", None), ("<module>", None)]
    rows = tables.query(held, "SELECT demangled, full_demangled FROM native.symbols('libstore.so')"
                              " WHERE name LIKE '%_ZN5store4hold%' OR name = 'start' ORDER BY name")
    assert [(row["demangled"], row["full_demangled"]) for row in rows] == [(SHORT, FULL),
                                                                          (None, None)]
