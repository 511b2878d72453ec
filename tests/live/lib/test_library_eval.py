# SPDX-License-Identifier: GPL-3.0-or-later
"""libprobing runs code in a process: its results, its end, and refusals."""
import threading

import pytest
import support
from library import (CANCELLED, FAILED, LIBRARY, NO_AGENT, NO_PROCESS, ON_MAIN, ON_OUTPUT, TIMEOUT,
                     UNSUPPORTED, USAGE, Error, Session, check)


@pytest.fixture(params=support.INTERPRETERS, ids=repr)
def session(request, target):
    process = target("threads.py", interpreter=request.param)
    with Session(process.pid) as session:
        session.process = process
        yield session


@pytest.fixture
def one(target):
    process = target("threads.py")
    with Session(process.pid) as session:
        session.process = process
        yield session


def test_output_and_value(session):
    given = session.eval("import sys\nprint('out')\nx = sys.stderr.write('err\\n')\n6 * 7")
    assert given == {"stdout": "out\n", "stderr": "err\n", "value": "42"}
    assert session.eval("None") == {}
    # The session's earlier reads do not show the code's effects.
    session.eval("import threading; threading.current_thread().kept = True; made = 'by code'")
    assert session.eval("made") == {"value": "'by code'"}


def test_exceptions_are_errors(session):
    with pytest.raises(Error) as caught:
        session.eval("def f():\n    raise ValueError('wrong')\nf()", name="mine.py")
    assert caught.value.code == FAILED and str(caught.value) == "ValueError: wrong"
    assert session.given["traceback"].startswith("Traceback")
    assert 'File "mine.py", line 2, in f' in session.given["traceback"]
    assert session.eval("1") == {"value": "1"}


def test_the_main_thread(one):
    assert one.eval("import threading; threading.current_thread().name") != \
        {"value": "'MainThread'"}
    busy = "import threading\nthreading.main_thread().ident == threading.get_ident()"
    assert one.eval(busy) == {"value": "False"}


def test_a_main_thread_that_runs_no_python(target):
    process = target("asleep.py", "1")
    support.wait_for_all_asleep(process.pid, 2)
    with Session(process.pid) as session, pytest.raises(Error) as caught:
        session.eval("1", flags=ON_MAIN, timeout=0.2)
    assert caught.value.code == TIMEOUT and "main thread" in str(caught.value)


def test_statements_and_code_take_turns(one):
    for number in range(3):
        assert one.eval("%d" % number) == {"value": str(number)}
        assert one.query("SELECT count(*) > 4 FROM python.threads") == [(1,)]


def test_code_that_does_not_end_is_cancelled(one):
    code = "print('begun', flush=True)\nwhile True: pass"
    begun = threading.Event()

    def cancel():
        assert begun.wait(10)
        one.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Error) as caught:
        one.eval(code, on_output=lambda _: begun.set())
    thread.join()
    assert caught.value.code == CANCELLED and one.given["stdout"] == "begun\n"
    assert one.eval("1") == {"value": "1"}
    # A late cancellation does not end the next evaluation.
    one.cancel()
    assert one.query("SELECT 1") == [(1,)]


def test_a_handler_that_wants_no_more(one):
    with pytest.raises(Error) as caught:
        one.eval("while True: print('on', flush=True)", on_output=lambda _: True)
    assert caught.value.code == CANCELLED and one.given["stdout"].startswith("on")


def test_code_that_leaves_no_way_to_end_it(one):
    code = """
print("begun", flush=True)
import time
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        while time.monotonic() < end:
            pass
    except KeyboardInterrupt:
        print("no", flush=True)
"""
    with pytest.raises(Error) as caught:
        one.eval(code, on_output=lambda _: one.cancel())
    assert caught.value.code == CANCELLED


def test_a_timeout(one):
    with pytest.raises(Error) as caught:
        one.eval("while True: pass", timeout=0.2)
    assert caught.value.code == TIMEOUT and "0.2 s" in str(caught.value)


def test_no_agent_is_loaded_unasked(one):
    with pytest.raises(Error) as caught:
        one.eval("1", flags=NO_AGENT)
    assert "no agent" in str(caught.value)
    one.eval("1")
    assert one.eval("1", flags=NO_AGENT) == {"value": "1"}


def test_options_and_handler_may_be_left_out(one):
    assert not LIBRARY.probing_eval(one.pointer, b"kept = 1", None, ON_OUTPUT(), None)
    assert one.eval("kept") == {"value": "1"}



def test_what_is_refused(one, tmp_path, target):
    with Session() as nothing, pytest.raises(Error) as caught:
        nothing.eval("1")
    assert caught.value.code == USAGE and "one target, not in 0" in str(caught.value)
    saved = tmp_path / "saved.snapshot"
    check(LIBRARY.probing_snapshot(one.pointer, bytes(saved), 0))
    with Session(saved) as session, pytest.raises(Error) as caught:
        session.eval("1")
    assert caught.value.code == UNSUPPORTED and "live process" in str(caught.value)
    gone = target("threads.py")
    with Session(gone.pid) as session:
        gone.kill()
        gone.wait()
        with pytest.raises(Error) as caught:
            session.eval("1")
    assert caught.value.code == NO_PROCESS
    with pytest.raises(Error) as caught:
        one.eval("x" * (1 << 25))
    assert caught.value.code == USAGE and "bytes" in str(caught.value)
