# SPDX-License-Identifier: GPL-3.0-or-later
"""The display of each kind of value: repr(), or more."""
import json
import re
import subprocess

import pytest
import support
from library import Session

OTHERS = {  # by another text than repr()
    "instance": r"<__main__\.Plain name='plain' rows=\[1, 2\]>",
    "instance with slots": r"<__main__\.Slotted left=1 right='two'>",
    "argparse.Namespace": r"<argparse\.Namespace epochs=3 lr=0\.1>",
    "method": r"<bound method Plain\.method of <__main__\.Plain .*>>",
    "generator, begun": r"<generator object generate at 0x\w+, suspended at kinds\.py:\d+>",
    "generator, new": r"<generator object generate at 0x\w+, not started>",
    "coroutine": r"<coroutine object wait at 0x\w+, not started>",
    "frame": r"<frame at 0x\w+, file '.*kinds\.py', line \d+, code main>",
    "file": r"<_io\.TextIOWrapper name='.*kinds\.py' mode='r' encoding='utf-8' fd=\d+ fd_pos=\d+>",
    "socket": r"<socket\.socket fd=\d+, family=AF_INET, type=SOCK_STREAM, proto=0>",
    "Popen": r"<subprocess\.Popen .*pid=\d+ returncode=None>",
    "Future, done": r"<concurrent\.futures\._base\.Future _state='FINISHED' _result=\[1, 2\] "
                    r"_exception=None>",
    "Future, failed": r"<concurrent\..*Future _state='FINISHED' _result=None "
                      r"_exception=ValueError\('lost',?\)>",
    "asyncio.Task": r"<Task pending (name='Task-1' )?coro=<coroutine object wait at 0x\w+, .*>.*>",
    "Logger": r"<logging\.Logger name='a\.b' level=0 parent=.* handlers=\[\] disabled=False>",
    "Queue": r"<queue\.Queue maxsize=5 queue=deque\(\['job'\]\) unfinished_tasks=1.*>",
    "list": r"\[1, \[2, \[3, \[4, \[…\+1\]\]\]\]\]",
}
OLD = {  # further values of these versions
    "asyncio.Task": ((3, 7), r"<_asyncio\.Task object at 0x\w+>"),
    "frame": ((3, 7), r"<frame .*>"),
    "generic alias": ((3, 7), r".*"),
    "Event": ((3, 11), r"<threading\.Event .*_flag=True>"),
    "Semaphore": ((3, 11), r"<threading\.Semaphore .*_value=2>"),
}


def expected(kind, told, version):
    if kind in OLD and version < OLD[kind][0]:
        return OLD[kind][1]
    return OTHERS.get(kind, re.escape(told))


def test_what_is_shown_of_each_kind(interpreter):
    with support.Target(interpreter, support.HERE / "programs" / "kinds.py") as process:
        truth = json.loads(process.line())
        support.wait_for_sleep(process.pid, "pipe_read")
        with Session(process.pid) as session:
            shown = dict(session.query("SELECT name, value FROM python.locals WHERE depth = 0"))
        assert len(shown) == len(truth) >= 60
        for kind, told in truth.items():
            value = shown[re.sub(r"\W", "_", kind) + "_"]
            assert re.fullmatch(expected(kind, told, interpreter.version), value), (kind, value, told)


FILES = """
import io, json, os, sys
path = sys.argv[1]
with io.open(path, "wb") as file:
    file.write(bytes(bytearray(range(256))) * 100)
def show(reader, far, fresh, writer, both, text, piped, raw, closed):
    sys.stdout.write(json.dumps([text.fileno(), os.lseek(text.fileno(), 0, 1)]) + "\\n")
    sys.stdout.flush()
    sys.stdin.read()
reader, far, fresh = io.open(path, "rb"), io.open(path, "rb"), io.open(path, "rb")
reader.read(10), far.seek(20000), far.read(3)
writer, both = io.open(path + ".new", "wb"), io.open(path, "r+b")
writer.write(b"x" * 100), both.read(5), both.write(b"abc")
text = io.open(path, encoding="latin-1")
text.readline()
given, taken = os.pipe()
os.write(taken, b"some")
piped, raw, closed = io.open(given, "rb"), io.open(path, "rb", 0), io.open(path, "rb")
piped.read(2), raw.read(7), closed.close()
show(reader, far, fresh, writer, both, text, piped, raw, closed)
"""


@pytest.mark.every_interpreter
def test_where_files_are(interpreter, tmp_path):
    """The result of tell(), from the buffer; of a text file, the position of its descriptor."""
    program = tmp_path / "files.py"
    program.write_text(FILES)
    with support.Target(interpreter, program, tmp_path / "data") as process:
        descriptor, at = json.loads(process.line())
        support.wait_for_sleep(process.pid, "pipe_read")
        with Session(process.pid) as session:
            shown = dict(session.query("SELECT name, value FROM python.locals WHERE depth = 0"))
    ending = " fd=%d fd_pos=%d>" % (descriptor, at)
    assert shown["text"].endswith(ending) and at > 0, shown
    for name, position in (("reader", 10), ("far", 20003), ("fresh", 0), ("writer", 100), ("both", 8)):
        # Before 3.7 it may be unknown whether a file can seek.
        unknown = "?" if interpreter.version < (3, 7) else ""
        assert re.search(r" fd=\d+( pos=%d)%s>$" % (position, unknown), shown[name]), shown
    for name in ("piped", "raw"):
        assert re.search(r" fd=\d+>$", shown[name]), shown
    assert shown["closed"].endswith(" closed>"), shown


def test_a_generator_goes_on(newest, tmp_path):
    program = tmp_path / "goes.py"
    program.write_text("import sys\n\ndef count():\n    yield 1\n    yield 2\n\n\ncounter = count()\n"
                       "for line in iter(sys.stdin.readline, ''):\n"
                       "    next(counter, None)\n    print('ready', flush=True)\n")

    def state():
        out = subprocess.check_output([support.BINARY, "-t", str(process.pid), "print", "counter"])
        return out.decode().rpartition(", ")[2].rstrip(">\n")

    with support.Target(newest, program) as process:
        support.wait_for_sleep(process.pid, "pipe_read")
        for expected_state in ("not started", "suspended at goes.py:4", "suspended at goes.py:5",
                               "finished"):
            assert state() == expected_state
            process.send(b"next\n")
            assert process.line() == "ready"
            support.wait_for_sleep(process.pid, "pipe_read")


TASKS = """
import asyncio, contextvars, sys

request = contextvars.ContextVar("request", default=None)

async def wait(event):
    inner = [7]
    await event.wait()

async def fails():
    raise ValueError("lost")

async def gives():
    return [1, 2]

def show(waits, gave, failed, cancelled, future, given, request, anything):
    print("ready", flush=True)
    sys.stdin.read()

async def main():
    loop, event = asyncio.get_event_loop(), asyncio.Event()
    waits, cancelled = loop.create_task(wait(event)), loop.create_task(wait(event))
    gave, failed = loop.create_task(gives()), loop.create_task(fails())
    if hasattr(waits, "set_name"):
        waits.set_name("worker")
    await asyncio.wait([gave, failed])
    cancelled.cancel()
    await asyncio.wait([cancelled])
    future, given = loop.create_future(), loop.create_future()
    given.set_result("x")
    show(waits, gave, failed, cancelled, future, given, request, {"all": [waits, waits]})

asyncio.new_event_loop().run_until_complete(main())
"""


def test_tasks_and_futures(interpreter, tmp_path):
    if interpreter.version < (3, 7):
        pytest.skip("nothing tells how tasks lie in memory there")
    program = tmp_path / "tasks.py"
    program.write_text(TASKS)
    with support.Target(interpreter, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")

        def shown(expression):
            return subprocess.check_output([support.BINARY, str(process.pid), "print", expression]).decode()[:-1]

        waits = r"<Task pending%s coro=<coroutine object wait at 0x\w+, awaits at tasks\.py:\d+> " \
                r"wait_for=<Future pending>>" % (" name='worker'" if interpreter.version >= (3, 8) else "")
        ended = r"(?: name='Task-\d+')? coro=<coroutine object %s at 0x\w+, finished>"
        for name, text in (("waits", waits), ("gave", "<Task finished" + ended % "gives" + r" result=\[1, 2\]>"),
                           ("failed", "<Task finished" + ended % "fails" + r" exception=ValueError\('lost'\)>"),
                           ("cancelled", "<Task cancelled" + ended % "wait" + ">"),
                           ("future", "<Future pending>"), ("given", "<Future finished result='x'>"),
                           ("request", r"<ContextVar name='request' default=None at 0x\w+>"),
                           ("anything", r"\{'all': \[%s, %s\]\}" % (waits, waits)),
                           ("waits._coro.cr_frame.f_locals['inner']", r"\[7\]"),
                           ("waits._coro.cr_await", r"<coroutine object Event\.wait at .*>"),
                           ("waits._fut_waiter", "<Future pending>"), ("waits._loop", "<.*EventLoop.*>")):
            assert re.fullmatch(text, shown(name)), (name, shown(name))


DERIVED = """
import collections, json, sys
plain = {"dict": {"a": [1]}, "list": [1, 2], "tuple": (1,), "str": u"text", "bytes": b"a", "int": 7, "float": 0.5,
         "set": {1}}
def show(**values):
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.read()
found = {}
for name, value in plain.items():
    made = type("Own", (type(value),), {"__repr__": lambda self: sys.exit("code of the program runs")})
    found["own_" + name] = type("Inner", (made,), {"__module__": "inner"})(value)
found["own_dict"].extra = 5
found["own_list"].append(found["own_list"])
show(**found)
"""


def test_plain_types_with_a_repr_of_their_own(interpreter, tmp_path):
    """Their value as the plain type is shown, and the rest; a list within itself ends."""
    program = tmp_path / "derived.py"
    program.write_text(DERIVED)
    with support.Target(interpreter, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")

        def shown(name):
            out = subprocess.check_output([support.BINARY, "-t", str(process.pid), "print", "values['own_%s']" % name])
            return out.decode().rstrip("\n")

        assert shown("dict") == "<inner.Inner {'a': [1]} extra=5>"
        assert re.fullmatch(r"<inner\.Inner \[1, 2, <inner\.Inner (\[\.\.\.\]|object at 0x\w+)>\]>", shown("list"))
        assert [shown(name) for name in ("tuple", "str", "bytes", "int", "float")] == [
            "<inner.Inner %s>" % text for text in ("(1,)", "'text'", "b'a'", "7", "0.5")]
        assert shown("set") == "<inner.Inner Inner({1})>"
