# SPDX-License-Identifier: GPL-3.0-or-later
"""libprobing in a debugger: a process read through functions, results as text, ending a query."""

import ctypes
import os
import random
import subprocess

import library
import pytest
import support
import tables
from debuggers import QUERIES
from debuggers import sleeping  # noqa: F401 (fixture)
from library import LIBRARY, Debugger, Error, Session, check

PROGRAMS = support.HERE / "programs"
X86_64, AARCH64 = 62, 183
MACHINE = {"x86_64": X86_64, "aarch64": AARCH64}[os.uname().machine]

class Through(Debugger):
    """A process that is read by functions, each of which can be made to lie."""

    def __init__(self, pid, **changed):
        super().__init__(pid=pid, machine=MACHINE, held=1)
        self.target = pid
        self.memory = open("/proc/%d/mem" % pid, "rb", 0)
        self.asked = set()
        self.calls = 0
        self.read = library.READ(self.on_read)
        self.fact = library.FACT(self.on_fact)
        for name, value in changed.items():
            setattr(self, name, value)

    def on_read(self, _, address, buffer, length):
        self.calls += 1
        try:
            data = os.pread(self.memory.fileno(), length, address) if address < 1 << 63 else b""
        except OSError:
            return 0
        ctypes.memmove(buffer, data, len(data))
        return len(data)

    def text(self, name):
        if name == "task":
            return "".join("%d\n" % t for t in support.thread_ids(self.target)).encode()
        try:
            if name == "exe":
                return os.fsencode(os.readlink("/proc/%d/exe" % self.target))
            with open("/proc/%d/%s" % (self.target, name), "rb") as file:
                return file.read()
        except OSError:
            return None

    def on_fact(self, _, name, put, to):
        self.asked.add(name.decode())
        data = self.text(name.decode())
        return 1 if data is None else put(to, data, len(data))


def look_up(session, pid, expression, depth=0):
    """(type, repr(), address) of an expression in a frame."""
    found = []

    def tell(_, type_name, value, address):
        found.append((type_name.decode("utf-8", "replace"), value.decode("utf-8", "replace"), address))

    check(LIBRARY.probing_look_up(session.pointer, pid, depth, expression.encode(),
                                  library.ON_OBJECT(tell), None))
    return found[0]


def rows_of(session):
    return {name: tables.run(session, sql) for name, sql in QUERIES.items() if name != "native"}


def test_through_functions_as_directly(sleeping):
    through = Through(sleeping.pid)
    with Session(sleeping.pid) as direct, Session() as session:
        session.open_debugger(through)
        assert rows_of(session) == rows_of(direct)
        assert {"maps", "task"} <= through.asked
        before = through.calls
        session.query("SELECT * FROM python.stacks")
        # Earlier reads are cached.
        assert through.calls - before < before / 2


def test_a_process_that_is_held_is_read_directly(sleeping):
    with Session(sleeping.pid) as direct, Session() as session:
        session.open_debugger(Debugger(pid=sleeping.pid, machine=MACHINE, held=1))
        assert rows_of(session) == rows_of(direct)
        assert session.query("SELECT count(*) FROM process.fds") == \
            direct.query("SELECT count(*) FROM process.fds")


def test_what_cannot_be_opened(target):
    process = target("sleeper.py")
    cases = [
        (Debugger(size=8), "has no size"),
        (Debugger(), "tell a pid"),
        (Debugger(pid=-1), "not a process id"),
        (Debugger(pid=1 << 40), "not a process id"),
        (Debugger(pid=4194305, machine=MACHINE, held=1), "4194305"),
        (Through(process.pid, machine=3), "neither x86_64 nor aarch64"),
        (Through(process.pid, fact=library.FACT(lambda *_: 1)), "memory map"),
        (Through(process.pid, fact=library.FACT()), "memory and facts"),
        (Through(process.pid, text=lambda name: b"nonsense\n"), "is malformed"),
    ]
    for debugger, said in cases:
        with Session() as session, pytest.raises(Error) as error:
            session.open_debugger(debugger)
        assert said in str(error.value), error.value


def test_an_older_struct_is_taken(target):
    process = target("sleeper.py")
    with Session() as session:
        older = Debugger(pid=process.pid, machine=MACHINE, held=1, size=Debugger.read.offset)
        session.open_debugger(older)
        assert session.query("SELECT count(*) FROM python.threads") == [(1,)]


@pytest.mark.parametrize("lie", ["noise", "half", "nothing", "more", "tids", "stat"])
def test_lies(sleeping, lie):
    """With any hostile answers, the library ends, with rows or an error."""
    through, chance = Through(sleeping.pid), random.Random(lie)
    true_read, true_text = through.on_read, through.text

    def read(context, address, buffer, length):
        done = true_read(context, address, buffer, length)
        if lie == "nothing":
            return 0
        if lie == "half":
            return done // 2
        if lie == "more":
            return 1 << 40
        if lie == "noise" and chance.random() < 0.2:
            noise = bytes(chance.randrange(256) for _ in range(min(length, 256)))
            ctypes.memmove(buffer, noise, len(noise))
        return done

    def text(name):
        if lie == "tids" and name == "task":
            return b"-1\n0\n99999999999999999999\nx\n\n4194304\n" * 1000
        if lie == "stat" and name.endswith("/stat"):
            return b"1 (" * 100000
        return true_text(name)

    through.read, through.text = library.READ(read), text
    for ask in [lambda s, sql=sql: s.query(sql) for sql in QUERIES.values()] + \
            [lambda s, text=text: look_up(s, sleeping.pid, text, 1)
             for text in ("threading._active", "json.__spec__.name", "os.environ", "SHOWN[-1]")]:
        with Session() as session:
            try:
                session.open_debugger(through)
                ask(session)
            except Error as error:
                assert str(error)


def test_text_is_that_of_the_command(target):
    process = target("sleeper.py")
    support.wait_for_sleep(process.pid, "pipe_read")
    sql = "SELECT func, lineno, NULL AS missing, 1.5 AS real FROM python.stacks; SELECT 'a\tb' AS t"
    formats = []
    while LIBRARY.probing_format(len(formats)):
        formats.append(LIBRARY.probing_format(len(formats)).decode())
    assert {"table", "json", "ndjson", "csv", "tsv"} <= set(formats)
    with Session(process.pid) as session:
        for form in formats:
            done = subprocess.run([support.BINARY, "-p", str(process.pid), "query", "-f", form, sql],
                                  stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)
            assert session.print(sql, form) == done.stdout.decode(), form
        with pytest.raises(Error) as error:
            session.print("SELECT 1", "xml")
        assert error.value.code == library.USAGE
        narrow = session.print("SELECT * FROM python.stacks", "table", width=50)
        assert max(map(len, narrow.splitlines()[:2])) <= 50 and "do not fit" in narrow
        # Output before an error is passed on; and the caller may stop it.
        with pytest.raises(Error):
            session.print("SELECT 1 AS a; SELECT no_such", "csv")
        assert session.printed.splitlines() == ["a", "1"]
        many = "SELECT value FROM generate_series(1, 100000000)"
        assert len(session.print(many, "csv", enough=1000)) < 1000000


def test_polling_ends_a_query(newest):
    asked = []

    def poll(_):
        asked.append(1)
        return int(len(asked) == 3)

    handler = library.ON_POLL(poll)
    with Session() as session:
        LIBRARY.probing_on_poll(session.pointer, handler, None)
        with pytest.raises(Error) as error:
            session.query("SELECT count(*) FROM generate_series(1, 1000000000)")
        assert error.value.code == library.CANCELLED and len(asked) == 3
        assert session.query("SELECT 1") == [(1,)]


def test_saving(sleeping, tmp_path):
    file = tmp_path / "saved"
    with Session(sleeping.pid) as session:
        expected = session.query(QUERIES["locals"])
        check(LIBRARY.probing_snapshot(session.pointer, bytes(file), 0))
        assert session.query(QUERIES["locals"]) == expected
    with Session(file) as saved:
        assert saved.query(QUERIES["locals"]) == expected
        with pytest.raises(Error, match="snapshot already"):
            check(LIBRARY.probing_snapshot(saved.pointer, bytes(file), 0))
    with Session(sleeping.pid) as session:
        check(LIBRARY.probing_snapshot(session.pointer, bytes(file), 1))
    with Session(file) as saved:
        assert saved.query("SELECT value FROM python.locals WHERE value IS NOT NULL") == []
    with Session() as session, pytest.raises(Error, match="of one target, not of 0"):
        check(LIBRARY.probing_snapshot(session.pointer, bytes(file), 0))
