# SPDX-License-Identifier: GPL-3.0-or-later
"""Special cases of a step, by its first argument; lines on stdout report the results."""
import _thread
import os
import subprocess
import sys
import threading
import time


def say(text):
    os.write(1, ("%s\n" % text).encode())


def sleeps():
    say("ready")
    while True:
        time.sleep(3600)


def reads():
    """Until the test has it go on."""
    say("ready")
    while True:
        got = sys.stdin.readline()
        say("read " + got.strip())


def traced():
    sys.settrace(lambda *_: None)
    sleeps()


def retraces():
    """In the middle of a step."""
    say("ready")
    sys.stdin.readline()
    sys.settrace(lambda *_: None)
    sleeps()


def covered():
    sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, "coverage")
    sleeps()


def debugged():
    sys.monitoring.use_tool_id(sys.monitoring.DEBUGGER_ID, "debugger")
    sleeps()


def full():
    for number in range(6):
        if number not in (sys.monitoring.COVERAGE_ID, sys.monitoring.DEBUGGER_ID):
            sys.monitoring.use_tool_id(number, "other")
    sleeps()


def audited():
    sys.addaudithook(lambda *_: None)
    sleeps()


def forks():
    say("ready")
    while True:
        child = os.fork()
        if not child:
            os._exit(childs_work())
        status = os.waitpid(child, 0)[1]
        say("child %d" % status)


def childs_work():
    """In the child of a thread that steps: it is neither stopped nor called for."""
    total = 0
    for number in range(100):
        total += number
    if sys.version_info >= (3, 12):
        return sum(sys.monitoring.get_tool(each) is not None for each in range(6))
    return 0


def spawns():
    say("ready")
    while True:
        done = subprocess.call([sys.executable, "-c", "print('child 0')"])
        time.sleep(done)


def returns():
    sys.stdin.readline()


def raises():
    sys.stdin.readline()
    raise ValueError("by the program")


def exits():
    sys.stdin.readline()
    sys.exit()


def ends_all():
    sys.stdin.readline()
    os._exit(0)


def thread_ends(how):
    """Once the test says so."""
    sys.stderr = open(os.devnull, "w")
    threading.Thread(target=globals()[how]).start()
    sleeps()


def thread_of_c_ends():
    """A thread unknown to Python's own module for threads."""
    _thread.start_new_thread(returns, ())
    sleeps()


def program_ends(how):
    say("ready")
    globals()[how]()


def first_thread_ends():
    """The others go on."""
    threading.Thread(target=time.sleep, args=(3600,)).start()
    say("ready")
    sys.stdin.readline()
    __import__("ctypes").CDLL(None).pthread_exit(None)


def frees():
    """Objects are freed where the program would free them, by the thread that would."""
    class Local:
        def __del__(self):
            freed.append(threading.get_ident())

    def has():
        local = Local()
        return id(local)

    freed = []
    say("ready")
    while True:
        has()
        assert freed == [threading.get_ident()], freed
        freed.clear()


threading.Thread(target=int).start()  # before 3.7, a GIL is made for it
globals()[sys.argv[1]](*sys.argv[2:])
