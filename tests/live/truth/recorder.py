# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs in the target (any Python from 3.4): a generated program that records its own stack.

    python recorder.py PROGRAM SHARED_FILE ROUNDS

The program calls leaf() in many places. In rounds that record, leaf() writes Python's own data of each
frame of its thread as one line of JSON to stdout and then waits, in a system call or spinning, until the
driver counts the thread's number in the shared file up.
"""
import builtins
import dis
import itertools
import json
import mmap
import os
import struct
import sys
import threading

_lock = threading.Lock()
_local = threading.local()
_numbers = None
_rounds = []
_threads = []
_known = {}
_qualnames = {}


def learn_qualnames(code):
    """Before 3.11 a code object does not know its qualified name, but the instructions that make
    a function of it do: the name is the constant after the code object."""
    constants = code.co_consts
    for inner in constants:
        if isinstance(inner, type(code)):
            learn_qualnames(inner)
    if hasattr(code, "co_qualname") or not hasattr(dis, "get_instructions"):
        return
    before = None
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("LOAD_CONST"):
            value = instruction.argval
            if isinstance(before, type(code)) and isinstance(value, str):
                _qualnames.setdefault(id(before), (before, value))
            before = value
        elif instruction.opname not in ("EXTENDED_ARG", "CACHE"):
            before = None


def qualname(code):
    if hasattr(code, "co_qualname"):
        return code.co_qualname
    known = _qualnames.get(id(code))
    return known[1] if known else None


def positions(code, lasti):
    """(line, end line, column, end column) as Python says it; None before 3.11."""
    if not hasattr(code, "co_positions") or lasti < 0:
        return None
    key = (id(code), lasti)
    if key not in _known:
        found = next(itertools.islice(code.co_positions(), lasti // 2, None))
        _known[key] = (code, found)
    return _known[key][1]


def describe(frame):
    code = frame.f_code
    return [
        code.co_name, qualname(code), code.co_filename, frame.f_lineno,
        positions(code, frame.f_lasti),
    ]


def tell(record):
    line = (json.dumps(record) + "\n").encode("ascii")
    with _lock:
        while line:
            line = line[os.write(1, line):]


def tid():
    return int(os.readlink("/proc/thread-self").split("/")[-1])


def number(index):
    return struct.unpack_from("<q", _numbers, 8 * index)[0]


def record(frame):
    stack = []
    while frame is not None:
        stack.append(describe(frame))
        frame = frame.f_back
    tell({
        "thread": _local.index, "tid": tid(), "name": threading.current_thread().name,
        "how": _local.how, "stack": stack,
    })


def wait_blocked():
    while number(_local.index) < _local.turn:
        os.read(_local.pipe, 1)


def wait_spinning():
    read, place, turn = struct.Struct("<q").unpack_from, 8 * _local.index, _local.turn
    while read(_numbers, place)[0] < turn:
        pass


def leaf(value=1):
    """Called by the generated code at its leaves."""
    if _local.how == "warm":
        return 1
    _local.turn += 1
    record(sys._getframe(1))
    if _local.how == "spin":
        wait_spinning()
    else:
        wait_blocked()
    return 1


def rounds():
    """One item for each run of the thread's root; says meanwhile how leaf() has to behave."""
    for how in _rounds:
        _local.how = how
        yield how
    _local.how = "warm"


def enter_thread(index):
    _local.index = index
    _local.turn = 0
    _local.how = "warm"
    _local.pipe = os.open("%s.%d" % (sys.argv[2], index), os.O_RDWR)


def thread_main(index, root):
    enter_thread(index)
    try:
        for _ in rounds():
            root()
        tell({"thread": index, "end": True})
    except BaseException:
        import traceback

        tell({"thread": index, "failed": traceback.format_exc()})


def start(roots):
    """Called by the program: its other threads, from number 1 on."""
    for index, root in enumerate(roots, 1):
        thread = threading.Thread(target=thread_main, args=(index, root), name="truth-%d" % index)
        thread.daemon = True
        _threads.append(thread)
        thread.start()


def main():
    global _numbers
    with open(sys.argv[2], "r+b") as file:
        _numbers = mmap.mmap(file.fileno(), 0)
    _rounds.extend(sys.argv[3].split(","))
    with open(sys.argv[1], encoding="utf-8") as file:
        code = compile(file.read(), sys.argv[1], "exec")
    learn_qualnames(code)
    builtins.leaf, builtins.rounds, builtins.start = leaf, rounds, start
    builtins.learn_qualnames = learn_qualnames
    sys.setrecursionlimit(10000)
    enter_thread(0)
    try:
        exec(code, {"__name__": "truth_program", "__file__": sys.argv[1]})
        tell({"thread": 0, "end": True})
    except BaseException:
        import traceback

        tell({"thread": 0, "failed": traceback.format_exc()})
    for thread in _threads:
        thread.join()


if __name__ == "__main__":
    main()
