# SPDX-License-Identifier: GPL-3.0-or-later
# Runs in the main interpreter of the target, with number, name and source given as names: has another
# interpreter of the process run the source, on this thread, and prints what it printed.
import posix
import sys

INNER = """
def __probing__(source, name, fd):
    import ast
    import io
    import posix
    import sys

    out, before, status = io.StringIO(), (sys.stdout, sys.stderr), b"="
    sys.stdout = sys.stderr = out
    try:
        names = sys.modules["__main__"].__dict__
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                out.write(repr(value) + chr(10))
    except BaseException:
        import traceback
        status = b"!"
        kind, value, trace = sys.exc_info()
        traceback.print_exception(kind, value, trace.tb_next, file=out)
    finally:
        sys.stdout, sys.stderr = before
        # threading.current_thread() keeps an object for a foreign thread.
        threading = sys.modules.get("threading")
        if threading and type(threading._active.get(threading.get_ident())) is threading._DummyThread:
            del threading._active[threading.get_ident()]
    data = status + out.getvalue().encode("utf-8", "backslashreplace")
    while data:
        data = data[posix.write(fd, data):]


globals().pop("__probing__")(%r, %r, %d)
"""


def find_functions():
    """(the numbers of all, what runs a text in one)"""
    try:
        import _interpreters as known
    except ImportError:
        try:
            import _xxsubinterpreters as known
        except ImportError:
            raise RuntimeError("code runs in another interpreter from Python 3.8 on")
    run = getattr(known, "run_string", None) or known.exec
    # From 3.13 on the list has a second number for each.
    numbers = [int(each[0] if isinstance(each, tuple) else each) for each in known.list_all()]
    return numbers, run


def run_beside(number, text):
    """By a thread of its own, beside those of an interpreter that has several and the same GIL."""
    frame = sys._getframe()
    while frame.f_code.co_filename != "<probing agent>":
        frame = frame.f_back
    return frame.f_globals["run_beside"](number, text.encode("utf-8", "surrogatepass"))


def run_there(number, name, source):
    numbers, run = find_functions()
    if number not in numbers:
        raise LookupError("there is no interpreter %d: python.interpreters has %s" % (
            number, ", ".join(map(str, numbers))))
    fd = posix.memfd_create("probing")
    try:
        text, failed = INNER % (source, name, fd), None
        try:
            failed = run(number, text)
        except Exception as error:
            if "already running" in str(error):
                raise RuntimeError("interpreter %d is already running code, and takes no other meanwhile" % number)
            if "more than one thread" not in str(error):
                raise
            # One with a GIL of its own, as there are from 3.12 on, could end meanwhile.
            ran = 0 if sys.version_info >= (3, 12) else run_beside(number, text)
            if not ran:
                raise RuntimeError("interpreter %d has several threads, and may end while the code runs: nothing was run" % number)
            if ran < 0:
                raise RuntimeError("the code in interpreter %d was interrupted" % number)
        data, at = b"", 0
        while True:
            part = posix.pread(fd, 1 << 16, at)
            if not part:
                break
            data, at = data + part, at + len(part)
    finally:
        posix.close(fd)
    text = data[1:].decode("utf-8", "replace")
    if data[:1] == b"=":
        sys.stdout.write(text)
        return
    sys.stderr.write(text)
    raise RuntimeError("the code raised in interpreter %d%s" % (number, ": %s" % (failed,) if failed else ""))


run_there(number, name, source)
