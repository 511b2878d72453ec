# SPDX-License-Identifier: GPL-3.0-or-later
"""Native frames among Python frames: each Python frame appears once, between the right C functions."""
import os
import subprocess
import tempfile

import pytest

import environment
import support

PROGRAMS = support.HERE / "programs"
PROGRAM = str(PROGRAMS / "native_calls.py")
DUMPS = support.count(10, 200)
HEADERS = "import os, sysconfig; p = sysconfig.get_paths()['include']; " \
    "print(p if os.path.exists(p + '/Python.h') else '')"
INLINED = "shapes::Holder<int>::inlined(int) const"

# Frames between the two calls of nest(), innermost first; "*": at least one other C function.
SCENARIOS = {
    "plain": ["plain"],
    "outer": ["native_inner", "native_outer", "*", "outer"],
    "alloca": ["native_inner", "native_alloca", "*", "alloca"],
    "module": ["native_inner", "native_outer", "module_call", "*", "module"],
    "c_sort": ["native_inner", "native_compare", "*", "native_sort", "*", "c_sort"],
    "plus": [INLINED, "shapes::Holder<int>::call(int const&) const", "native_plus", "*", "plus"],
    "callback": ["compare", "*", "callback"],
    "py_signal": ["handler", "*", "py_signal"],
    "generator": ["inner", "delegating", "generator"],
    "coroutine": ["inner", "awaiting", "*", "coroutine"],
    "event_loop": ["work", "*", "event_loop"],
    "special_eq": ["__eq__", "*", "special_eq"],
    "special_repr": ["__repr__", "*", "special_repr"],
    "special_del": ["__del__", "*", "special_del"],
    "special_init": ["__init__", "special_init"],
    "special_getattr": ["__getattr__", "*", "special_getattr"],
    "special_hash": ["__hash__", "*", "special_hash"],
    "descriptor": ["value", "descriptor"],
    "manager": ["__enter__", "manager"],
    "sort_key": ["key", "*", "sort_key"],
    "reduced": ["add", "*", "reduced"],
    "mapped": ["<lambda>", "*", "mapped"],
    "chained": ["<lambda>", "*", "chained"],
    "replaced": ["found", "*", "replaced"],
    "partial": ["partial"],
    "cached": ["<lambda>", "*", "cached"],
    "executed": ["run", "<module>", "*", "executed"],
    "evaluated": ["<listcomp>", "<module>", "*", "evaluated"],
    "encoded": ["default", "*", "encoded"],
    "imported": ["at_import", "<module>", "*", "imported"],
}
NEEDS_CTYPES = {"outer", "alloca", "c_sort", "plus", "callback"}
MARKERS = {name for names in SCENARIOS.values() for name in names
           if name.startswith(("native_", "module_", "shapes::"))} | {
               "native_handler", "native_raise", "native_spinning_handler",
               "native_thread_work", "native_thread"}
LEAVES = {"sleep": "leaf_sleep", "spin": "leaf_spin", "lock": "leaf_lock"}
NESTED = [interpreter for interpreter in support.INTERPRETERS if interpreter.version >= (3, 6)]


def compile_library(folder, name, source, *options):
    compiler = "g++" if source.endswith("pp") else "gcc"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-g", *options, "-o",
                    os.path.join(folder, name), str(PROGRAMS / source)], check=True)


class Libraries:
    """The C and C++ libraries, with a module for an interpreter where its headers are."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="probing-native-")
        self._made = {}

    def get(self, interpreter):
        """(folder, whether it has the module)"""
        environment.need("g++")
        if interpreter.name not in self._made:
            folder = os.path.join(self._folder.name, interpreter.name)
            os.mkdir(folder)
            compile_library(folder, "native_library.so", "native_library.c")
            compile_library(folder, "native_plus.so", "native_library.cpp")
            headers = subprocess.run([interpreter.exe, "-c", HEADERS], env=interpreter.env,
                                     stdout=subprocess.PIPE, check=True).stdout.decode().strip()
            if headers:
                compile_library(folder, "native_module.so", "native_library.c", "-DMODULE",
                                "-I" + headers)
            self._made[interpreter.name] = folder, bool(headers)
        return self._made[interpreter.name]

    def close(self):
        self._folder.cleanup()


@pytest.fixture(scope="module")
def libraries():
    made = Libraries()
    yield made
    made.close()


def scenarios(interpreter, has_module):
    """Those that this interpreter can run."""
    return [name for name in SCENARIOS
            if (interpreter.has_ctypes or name not in NEEDS_CTYPES)
            and (has_module or name != "module")]


def between(name, interpreter):
    if name == "evaluated" and interpreter.version >= (3, 12):
        return ["<module>", "*", "evaluated"]
    return SCENARIOS[name]


def pattern(names, innermost, interpreter):
    """The expected stack, innermost first."""
    result = innermost + ["nest"]
    for name in reversed(names):
        result += ["<lambda>"] + between(name, interpreter) + ["nest"]
    return result + ["main", "<module>"]


def simplify(frames):
    """Python functions of ours and C functions that mark; all other C functions between two of
    them as one star."""
    result = []
    for frame in frames:
        python = frame["kind"] == "python"
        # Other lambdas of "<string>" make named tuples.
        ours = python and (frame["file"] == PROGRAM or frame["file"].endswith("native_imported.py")
                           or frame["file"] == "<string>" and frame["func"] != "<lambda>")
        if ours or frame["func"] in MARKERS:
            result.append(frame["func"])
        elif not python and result[-1:] != ["*"]:
            result.append("*")
    return result


def differs(frames, expected):
    """Where the stack is not the pattern; None if it is."""
    seen = simplify(frames)
    at = 0
    for token in expected:
        if token != "*" and seen[at:at + 1] == ["*"]:
            at += 1
        if seen[at:at + 1] != [token]:
            return "%r stands where %r should, in %r" % (seen[at:at + 1], token, seen)
        at += 1
    return None if set(seen[at:]) <= {"*"} else "more than expected: %r" % seen[at:]


def check(thread, expected):
    assert not thread["error"], thread["error"]
    why = differs(thread["frames"], expected)
    assert not why, why


def names(thread):
    return [(frame["func"], frame["file"]) for frame in support.python_frames(thread)]


def check_unnamed(thread):
    """Code without a symbol can be found by the dump's address."""
    for frame in thread["frames"]:
        assert frame["kind"] == "python" or not frame["module"] or frame["offset"], frame
        assert frame["kind"] != "python" or frame["offset"] is None, frame


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("interpreter", NESTED, ids=repr)
def test_all_nested(interpreter, leaf, libraries):
    folder, has_module = libraries.get(interpreter)
    nested = scenarios(interpreter, has_module)
    expected = pattern(nested, [LEAVES[leaf]], interpreter)
    with support.Target(interpreter, PROGRAM, folder, leaf, *nested) as target:
        assert target.line() == "ready"
        wait_for(target, lambda thread: names(thread)[:1] == [(LEAVES[leaf], PROGRAM)])
        for options in [(), ("--freeze",), (), ("--freeze",)]:
            plain = support.dump(target.pid, *options)["threads"][0]
            native = support.dump(target.pid, "--native=all", *options)["threads"][0]
            check(native, expected)
            check_unnamed(native)
            assert names(plain) == names(native)
    support.report("%s %s: %d scenarios nested, %d native frames around %d of Python" % (
        interpreter, leaf, len(nested), len(native["frames"]) - len(names(native)),
        len(names(native))))


def wait_for(target, condition, *options):
    """The first dump of the main thread that fulfils the condition."""
    for _ in range(500):
        thread = support.dump(target.pid, *options)["threads"][0]
        if condition(thread):
            return thread
    raise AssertionError("never came to be: %r" % thread)


@pytest.mark.parametrize("leaf", ["sleep", "spin"])
@pytest.mark.parametrize(
    "interpreter", [each for each in NESTED if each.has_ctypes], ids=repr)
def test_blocked_in_c_handler(interpreter, leaf, libraries):
    handler = {"sleep": ["*", "native_handler"], "spin": ["native_spinning_handler"]}[leaf]
    expected = handler + ["*", "native_raise", "*", "in_handler", "nest"]
    folder, _ = libraries.get(interpreter)
    with support.Target(interpreter, PROGRAM, folder, leaf, "outer", "in_handler") as target:
        assert target.line() == "ready"

        def arrived(thread):
            seen = simplify(thread["frames"])
            # For a moment, the handler has not called nanosleep() yet.
            return seen[:2] == handler if leaf == "sleep" else handler[0] in seen[:2]

        for options in [(), ("--freeze",)]:
            thread = wait_for(target, arrived, "--native=all", *options)
            check(thread, expected + pattern(["outer"], [], interpreter)[1:])
            assert "<signal handler called>" in [frame["func"] for frame in thread["frames"]]


@pytest.mark.parametrize("leaf", ["sleep", "spin"])
@pytest.mark.parametrize(
    "interpreter", [each for each in NESTED if each.has_ctypes], ids=repr)
def test_code_without_module(interpreter, leaf, libraries):
    folder, _ = libraries.get(interpreter)
    expected = [LEAVES[leaf], "nest", "<lambda>", "<lambda>", "*", "trampoline", "nest",
                "<lambda>", "c_sort", "nest", "main", "<module>"]
    with support.Target(interpreter, PROGRAM, folder, leaf, "c_sort", "trampoline") as target:
        assert target.line() == "ready"
        plain = wait_for(target, lambda thread: names(thread)[:1] == [(LEAVES[leaf], PROGRAM)])
        for options in [(), ("--freeze",)]:
            thread = support.dump(target.pid, "--native=all", *options)["threads"][0]
            assert "native frames end early" in thread["error"]
            assert "outside any module" in thread["error"]
            assert names(thread) == names(plain)
            why = differs(thread["frames"], expected)
            assert not why, why


@pytest.mark.parametrize(
    "interpreter", [each for each in NESTED if each.has_ctypes], ids=repr)
def test_thread_without_python(interpreter, libraries):
    folder, _ = libraries.get(interpreter)
    with support.Target(interpreter, PROGRAM, folder, "sleep", "native_thread") as target:
        assert target.line() == "ready"
        support.wait_for_all_asleep(target.pid, 2)
        for options in [(), ("--freeze",)]:
            threads = support.dump(target.pid, "--native=all", *options)["threads"]
            others = [each for each in threads if each["tid"] != target.pid]
            assert len(others) == 1 and others[0]["interpreter"] is None
            assert not others[0]["error"], others[0]["error"]
            assert simplify(others[0]["frames"])[1:3] == ["native_thread_work", "native_thread"]
            assert not names(others[0])


@pytest.mark.parametrize("interpreter", NESTED, ids=repr)
def test_other_thread(interpreter, libraries):
    folder, _ = libraries.get(interpreter)
    with support.Target(interpreter, PROGRAM, folder, "spin", "sort_key", "in_thread") as target:
        assert target.line() == "ready"
        while ("leaf_spin", PROGRAM) not in names(support.dump(target.pid)["threads"][-1]):
            pass
        for options in [(), ("--freeze",)]:
            main, other = support.dump(target.pid, "--native=all", *options)["threads"]
            check(main, pattern(["sort_key"], ["*", "in_thread"], interpreter))
            check(other, ["leaf_spin", "nest", "<lambda>", "*"])


@pytest.mark.parametrize("leaf", ["sleep", "spin"])
@pytest.mark.parametrize("interpreter", NESTED, ids=repr)
def test_deep(interpreter, leaf, libraries):
    folder, _ = libraries.get(interpreter)
    depth = 150 if interpreter.debug_build else 600
    with support.Target(interpreter, PROGRAM, folder, leaf, "deep") as target:
        assert target.line() == "ready"
        plain = wait_for(target, lambda thread: names(thread)[:1] == [(LEAVES[leaf], PROGRAM)])
        for options in [(), ("--freeze",)]:
            thread = support.dump(target.pid, "--native=all", *options)["threads"][0]
            assert not thread["error"], thread["error"]
            assert names(thread) == names(plain)
            seen = [name for name in simplify(thread["frames"]) if name != "*"]
            assert seen.count("down") == depth + 1
            expected = [LEAVES[leaf], "nest", "<lambda>", "down"]
            for level in range(1, depth + 1):
                if level % 3 == 0 and interpreter.has_ctypes:
                    expected += ["<lambda>", "native_inner", "native_outer"]
                elif level % 3 == 1:
                    expected += ["<lambda>"]
                expected += ["down"]
            assert seen == expected + ["deep", "nest", "main", "<module>"]


def has_greenlet(interpreter):
    return not subprocess.run([interpreter.exe, "-c", "import greenlet"], env=interpreter.env,
                              stderr=subprocess.DEVNULL, check=False).returncode


@pytest.mark.parametrize("leaf", ["sleep", "spin"])
@pytest.mark.parametrize("interpreter", NESTED, ids=repr)
def test_greenlets(interpreter, leaf, libraries):
    if not has_greenlet(interpreter):
        pytest.skip("%s has no greenlet" % interpreter)
    folder, _ = libraries.get(interpreter)
    expected = [LEAVES[leaf], "nest", "<lambda>", "key", "*", "sort_key", "nest", "<lambda>",
                "inner"]
    with support.Target(interpreter, PROGRAM, folder, leaf, "greenlets", "sort_key") as target:
        assert target.line() == "ready"
        plain = wait_for(target, lambda thread: names(thread)[:1] == [(LEAVES[leaf], PROGRAM)])
        for options in [(), ("--freeze",)]:
            thread = support.dump(target.pid, "--native=all", *options)["threads"][0]
            assert not thread["error"], thread["error"]
            assert names(thread) == names(plain)
            assert not differs(thread["frames"], expected)


def snapshot_of(frames, patterns):
    """The pattern that a stack caught at any moment goes along, from the outermost frame on."""
    # Bodies of classes, which have their names, run before the calls.
    seen = [name for name in reversed(simplify(frames)) if name != "*" and not name[0].isupper()]
    for name, expected in patterns.items():
        steps = [token for token in reversed(expected) if token != "*"]
        if seen == steps[:len(seen)]:
            return name
    return None


@pytest.mark.parametrize("interpreter", NESTED, ids=repr)
def test_no_mismatch_under_churn(interpreter, libraries):
    folder, has_module = libraries.get(interpreter)
    able = scenarios(interpreter, has_module)
    patterns = {name: pattern([name], ["leaf_churn"], interpreter) for name in able}
    met = set()
    with support.Target(interpreter, PROGRAM, folder, "churn", *able) as target:
        assert target.line() == "ready"
        for number in range(DUMPS):
            options = ("--native=all", "--freeze") if number % 4 == 3 else ("--native=all",)
            thread = support.dump(target.pid, *options)["threads"][0]
            assert not thread["error"], thread["error"]
            name = snapshot_of(thread["frames"], patterns)
            assert name, simplify(thread["frames"])
            met.add(name)
    assert len(met) > min(DUMPS, len(able)) // 4
    support.report("native churn %s: %d dumps, %d of %d scenarios met, no mismatch" % (
        interpreter, DUMPS, len(met), len(able)))
