# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in code that runs in a frame mean what they mean in the frame's own code."""
import ast
import json
import subprocess

import support
from environment import FAILED, OK
from pauses import Pause

PROGRAMS = support.HERE / "programs"
UNBOUND = "late", "max", "captured", "free"
SAID = "late", "max", "free"  # of unbound_calls.py


def thread_named(pid, name):
    rows = subprocess.check_output(
        [support.BINARY, "-t", str(pid), "query", "-f", "json",
         "SELECT tid FROM python.threads WHERE name = '%s'" % name])
    return str(json.loads(rows.decode())[0]["tid"])


class Places:
    """unbound.py, and its code: in the function (a loop's frame lies above it), the class or the module."""

    program, places = "unbound.py", {"function": "inner", "class": "body"}

    def __init__(self, interpreter, probing):
        self.probing, self.version = probing, interpreter.version
        self.process = support.Target(interpreter, PROGRAMS / self.program)
        self.process.__enter__()
        self.process.line()
        self.words = {name: ("--tid", thread_named(self.process.pid, thread), "--frame", "1")
                      for name, thread in self.places.items()}
        self.words["module"] = ()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.__exit__(*what)

    def run(self, where, code, exit_code=OK):
        done = self.probing(self.process.pid, "eval", *self.words[where] + (code,))
        assert done.code == exit_code, done
        return done.out.rstrip("\n"), done.err

    def value(self, where, code):
        out, err = self.run(where, code)
        assert not err, err
        return out

    def raised(self, where, code):
        return self.run(where, code, FAILED)[1].rstrip().splitlines()[-1]

    def says(self, name):
        return self.value("module", "print(said[%r])" % name)


def test_variables_without_a_value(interpreter, probing):
    if interpreter.free_threaded:
        return  # it runs on in a pause, and the command says so
    with Places(interpreter, probing) as at, Pause(at.process.pid):
        for name in UNBOUND:
            said = at.says(name)
            assert name in said and at.raised("function", name) == said
            assert at.raised("function", "print(1)\nx = [%s]" % name) == said
            for code in "(lambda: %s)()", "[%s for _ in [1]]", "class C:\n    x = %s\n", \
                    "def f():\n    return %s\nf()":
                assert at.raised("function", code % name).startswith(
                    ("NameError: ", "UnboundLocalError: ")), code
            assert at.raised("function", "del %s" % name).startswith(("NameError: ", "UnboundLocalError: "))
            assert at.value("function", "'%s' in locals() or '%s' in dir() or '%s' in vars()" % (
                name, name, name)) == "False"
            assert at.value("function", "try:\n    %s\nexcept NameError as error:\n    "
                            "print('%%s: %%s' %% (type(error).__name__, error))" % name) == said
        # A name of a comprehension alone is a global one for the function's own code.
        assert at.value("function", "each") == "'GLOBAL each'"
        assert at.value("function", "min(1, 2), len(squares)") == "(1, 3)"


def test_own_variables(interpreter, probing):
    if interpreter.free_threaded:
        return
    with Places(interpreter, probing) as at, Pause(at.process.pid):
        assert at.value("function", "sorted(locals())") == "['named', 'squares']"
        # Shown when the value has been kept beside them.
        assert sorted(ast.literal_eval(at.value("function", "locals().keys()")[len("dict_keys"):])) == ["named", "squares"]
        assert at.value("function", "sorted(vars()) == dir() == sorted(locals())") == "True"
        assert at.value("function", "'late' in globals(), globals()['named'], globals() is vars("
                        "__import__('sys').modules['__main__'])") == "(True, 'GLOBAL named', True)"
        assert at.value("function", "eval('named'), [named for _ in [1]], (lambda: named)()") == \
            "('LOCAL named', ['LOCAL named'], 'LOCAL named')"
        assert at.value("class", "named, bound_free, late, (lambda: named)()") == \
            "('CLASS named', 'FREE bound', 'GLOBAL late', 'CLASS named')"
        assert at.value("class", "'late' in locals(), locals()['named'], 'said' in locals()") == \
            "(False, 'CLASS named', False)"
        assert at.value("module", "locals() is globals()") == "True"


def test_globals_of_the_module(interpreter, probing):
    """A name that the code declares as global is the module's, also where the frame has one like it."""
    if interpreter.free_threaded:
        return
    with Places(interpreter, probing) as at:
        with Pause(at.process.pid):
            for where in "function", "class":
                own = at.value(where, "named")
                assert at.value(where, "global named; named = 'NEW'") == ""
                assert at.value(where, "named") == own
                assert at.value("module", "named") == "'NEW'"
                assert at.value(where, "global named\nnamed, [named for _ in [1]], (lambda: named)()") == \
                    "('NEW', ['NEW'], 'NEW')"
                assert at.value(where, "def change():\n    global named\n    named = 'CHANGED'\n"
                                "change()\nnamed") == own
                assert at.value("module", "named") == "'CHANGED'"
                assert at.value(where, "global named\ndel named") == ""
                assert "NameError" in at.run("module", "named", FAILED)[1]
                assert at.value("module", "named = 'GLOBAL named'") == ""
            assert at.value("function", "global late\nlate") == "'GLOBAL late'"
            assert at.value("function", "global late\nlate = 'OTHER'") == ""
            assert at.raised("function", "late") == at.says("late")
            assert "SyntaxError" in at.raised("function", "named = 1; global named")
        at.process.send(b"\n")
        assert at.process.line() == "GLOBAL named OTHER"


def test_what_is_assigned(interpreter, probing):
    if interpreter.free_threaded:
        return
    with Places(interpreter, probing) as at, Pause(at.process.pid):
        settable = interpreter.version >= (3, 13)
        out, err = at.run("function", "late = 'SET'")
        assert not out and ("late was assigned" in err) == (not settable)
        if settable:
            assert at.value("function", "late") == "'SET'"
        assert at.value("module", "late") == "'GLOBAL late'"
        # What is new is neither the function's nor the module's, however it comes to be.
        told = "told: int = 3" if interpreter.version >= (3, 6) else "told = 3"
        assert at.value("function", told + """
import json as fresh
for number in [5]: pass
class Kind: pass
def helper():
    return number
fresh.__name__, number, helper(), Kind.__name__, told
""") == "('json', 5, 5, 'Kind', 3)"
        assert at.value("function", "from textwrap import *\ndedent(' a')") == "'a'"
        assert at.value("function", "from __future__ import division\nsquares, 1") == "([0, 1, 4], 1)"
        if interpreter.version >= (3, 8):
            out, err = at.run("function", "(named := 'W'), [wide := 1]")
            assert out == "('W', [1])" and at.value("module", "named") == "'GLOBAL named'"
            assert at.value("function", "named") == ("'W'" if settable else "'LOCAL named'")
        assert at.value("class", "late = 'NEW'; made = 1") == ""
        assert at.value("class", "late, made, named") == "('NEW', 1, 'CLASS named')"
        assert at.value("module", "late") == "'GLOBAL late'"
        assert at.value("module", "sorted({'fresh', 'number', 'helper', 'Kind', 'told', 'dedent', 'wide', 'made', "
                                  "'division'}.intersection(globals()))") == "[]"
        assert at.value("class", "named = 'SET'; print(named)") == "SET"
        assert at.value("class", "named, globals()['named']") == "('SET', 'GLOBAL named')"


class Scopes(Places):
    """scopes.py, and its code below rest()."""

    program, places = "scopes.py", {name: name for name in (
        "method", "hidden", "plain", "inner", "pricing", "generating", "returned", "declares", "body", "wrapper")}

    def prints(self, where, code, exit_code=OK):
        done = self.probing(self.process.pid, "print", *self.words[where] + (code,))
        assert done.code == exit_code, done
        return done.out.rstrip("\n") if exit_code == OK else done.err


def test_private_names(interpreter, probing):
    """They are those of the class around the frame's code, as the compiler makes them."""
    if interpreter.free_threaded:
        return
    with Scopes(interpreter, probing) as at, Pause(at.process.pid):
        for code in "__tok", "[__tok for _ in '1'][0]", "(lambda: __tok)()":
            assert at.value("method", code) == "'LOCAL tok'"
        for where, code in [("method", "self.__tok"), ("plain", "self.__tok"), ("plain", "_Vault.__tok")]:
            assert at.value(where, code) == "'CLASS tok'"
        for where in "plain", "inner", "hidden":
            assert at.value(where, "__tok") == "'GLOBAL mangled'"
        assert at.value("pricing", "__tok") == "'GLOBAL tok'" == at.value("module", "__tok")
        assert at.value("plain", "global __tok, __made; __tok = 'NEW'; __made = 1") == ""
        assert at.value("module", "__tok, _Vault__tok, _Vault__made") == "('GLOBAL tok', 'NEW', 1)"
        if interpreter.version >= (3, 11):
            assert at.value("wrapper", "__tok") == "'GLOBAL tok'"
        else:
            assert "'__tok' is a private name" in at.raised("wrapper", "__tok")
        assert "NameError: " in at.raised("plain", "__nowhere")


def test_variables_of_functions_around(interpreter, probing):
    """They are given where their frame is certain, and else refused: never a global instead."""
    if interpreter.free_threaded:
        return
    with Scopes(interpreter, probing) as at, Pause(at.process.pid):
        for code in "limit", "[limit for _ in '1'][0]", "(lambda: limit)()":
            assert at.value("pricing", code) == "'LOCAL limit'"
            assert at.value("body", code) == "'LOCAL limit'"
            for where, owner in [("generating", "generating"), ("inner", "inner"), ("returned", "made")]:
                said = at.raised(where, code)
                assert "NameError: 'limit' is a variable of %s" % (
                    "_Vault." + owner if owner == "inner" and interpreter.version >= (3, 11) else owner) in said
                assert (": --frame 2" in said) == (where != "returned"), said
            assert at.value("declares", code) == "'GLOBAL limit'"
        assert at.value("generating", "kept") == at.value("pricing", "kept") == "'LOCAL kept'"
        assert "UnboundLocalError: " in at.raised("pricing", "late") or interpreter.version < (3, 12) and \
            "NameError: free variable" in at.raised("pricing", "late").replace("cannot access free", "free")
        assert at.value("body", "late") == "'GLOBAL late'"
        assert at.value("body", "(lambda: late)()") == "'LOCAL late'"
        assert at.value("generating", "global limit; limit") == "'GLOBAL limit'"
        assert at.value("inner", "late, wrapped") == "('GLOBAL late', 'GLOBAL wrapped')"
        assert "NameError: " in at.raised("body", "(lambda: __class__)()")

def test_exceptions_in_a_frame(interpreter, probing):
    if interpreter.free_threaded:
        return
    with Places(interpreter, probing) as at, Pause(at.process.pid):
        err = at.run("function", "named = 'KEPT'\nnext(iter(()))", FAILED)[1]
        assert "StopIteration" in err and "probing agent" not in err and "RuntimeError" not in err, err
        assert ", line 2, in <module>\n    next(iter(()))\n" in err
        err = at.run("function", "def f():\n    raise GeneratorExit(named)\nf()", FAILED)[1]
        assert "GeneratorExit: " in err and ", line 3, in <module>\n    f()\n" in err and \
            "probing agent" not in err, err
        for code in "return 1", "yield 1", "break", "await named", "nonlocal named", "f(":
            assert "SyntaxError" in at.raised("function", code), code
        err = at.run("function", "\n" * 49 + "from nowhere import *", FAILED)[1]
        assert "No module named 'nowhere'" in err and ", line 50, in <module>\n" in err and \
            "probing agent" not in err, err
        assert ", line 50, in <module>\n    late + 1\n" in at.run("function", "\n" * 49 + "late + 1", FAILED)[1]
        assert "repr" in at.raised("function", "class R:\n    def __repr__(self):\n"
                                   "        raise ValueError('no repr')\nR()")
        assert not at.process.errors()


def test_conditions_and_logpoints(interpreter, probing):
    """As at a breakpoint of a debugger: it evaluates its condition alike."""
    with support.Target(interpreter, PROGRAMS / "unbound_calls.py") as process:
        assert process.line() == "ready"
        line = 1 + (PROGRAMS / "unbound_calls.py").read_text().splitlines().index("        time.sleep(0.02)")
        place = "unbound_calls.py:%d" % line
        said = eval(probing(process.pid, "eval", "said").out)
        assert sorted(said) == sorted(SAID)
        done = probing(process.pid, "trace", place, "late, max, free, named, min(1, 2), [named for _ in 'a'], "
                       "[late for _ in 'a'], [(lambda: 0)(), named, sorted(locals())], "
                       "(lambda: globals())() is globals() is vars(__import__('sys').modules['__main__'])",
                       "--for", "1s", "--json")
        assert done.code == OK and done.out, done
        values = json.loads(done.out.splitlines()[0])["values"]
        for name in SAID:
            assert values.pop(name) == said[name], name
        assert "Error: " in values.pop("[late for _ in 'a']")
        assert values == {"named": "'LOCAL named'", "min(1, 2)": "1", "[named for _ in 'a']": "['LOCAL named']",
                          "[(lambda: 0)(), named, sorted(locals())]": "[0, 'LOCAL named', ['named']]",
                          "(lambda: globals())() is globals() is vars(__import__('sys').modules['__main__'])":
                          "True"}
        done = probing(process.pid, "trace", place, "if", "late", "named", "--for", "1s")
        assert not done.out and "the condition raised " + said["late"] in done.err, done
        done = probing(process.pid, "trace", "--calls", "outer", "if", "free", "--for", "1s")
        assert not done.out and "the condition raised UnboundLocalError: " in done.err, done


def test_printed_names(interpreter, probing):
    """As in code, without any."""
    with Scopes(interpreter, probing) as at:
        assert at.prints("method", "__tok") == "'LOCAL tok'"
        assert at.prints("method", "self.__tok") == at.prints("plain", "self.__tok") == "'CLASS tok'"
        assert at.prints("plain", "__tok") == "'GLOBAL mangled'"
        for where in "pricing", "body":
            assert at.prints(where, "limit") == "'LOCAL limit'"
        for where, owner in [("generating", "generating"), ("inner", "inner"), ("returned", "made")]:
            said = at.prints(where, "limit", FAILED)
            assert "'limit' is a variable of " in said and owner in said, said
            assert ("'--frame 2' has it" in said) == (where != "returned"), said
        assert at.prints("generating", "kept") == "'LOCAL kept'"
        assert "unbound" in at.prints("pricing", "late", FAILED)
        assert at.prints("inner", "late") == "'GLOBAL late'"
        if interpreter.version < (3, 11):
            assert "'__tok' is a private name" in at.prints("wrapper", "__tok", FAILED)
        else:
            assert at.prints("wrapper", "__tok") == at.prints("pricing", "__tok") == "'GLOBAL tok'"


def test_conditions_in_a_class_and_a_function(interpreter, probing):
    """Conditions and logpoints name what the line itself could."""
    with support.Target(interpreter, PROGRAMS / "scopes_calls.py") as process:
        assert process.line() == "ready"
        lines = (PROGRAMS / "scopes_calls.py").read_text().splitlines()
        for mark, expressions, wanted in [
                ("method", "__tok, self.__tok, (lambda: __tok)()", ["'LOCAL tok'", "'CLASS tok'", "'LOCAL tok'"]),
                ("comprehension", "limit, [limit for _ in 'a']", ["'LOCAL limit'", "['LOCAL limit']"])]:
            place = "scopes_calls.py:%d" % (1 + [at for at, each in enumerate(lines) if "# " + mark in each][0])
            done = probing(process.pid, "trace", place, expressions, "--for", "1s", "--json")
            assert done.code == OK and done.out, done
            assert list(json.loads(done.out.splitlines()[0])["values"].values()) == wanted
        place = "scopes_calls.py:%d" % (1 + [at for at, each in enumerate(lines) if "# nested" in each][0])
        done = probing(process.pid, "trace", place, "if", "limit", "1", "--for", "1s")
        assert not done.out and "NameError: 'limit' is a variable of " in done.err, done
