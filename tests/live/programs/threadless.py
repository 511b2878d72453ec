# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that has not imported threading when it says "ready". Its main thread then reads stdin, sleeps
in short naps, counts, asks by input(), or is in one long sleep that a signal ends. It uses threads at the
end of that, and prints what it found as JSON."""
import os
import re
import select
import signal
import sys
import time

assert "threading" not in sys.modules, "threading is imported at start-up"


class Over(Exception):
    pass


def over(*_):
    raise Over


def go_on():
    return select.select([0], [], [], 0)[0]


def wait(mode):
    count = 0
    if mode == "reads":
        os.read(0, 1)
    elif mode == "asks":
        input()
    elif mode == "sleeps":
        time.sleep(3600)
    while not go_on():
        count += 1
        if mode == "naps":
            time.sleep(0.005)


def of_threading():
    import threading

    main = threading.main_thread()
    return {
        "current is main": threading.current_thread() is main,
        "ident": main.ident == threading.get_ident(),
        "native_id": getattr(main, "native_id", os.getpid()) == os.getpid(),
        "name": main.name, "daemon": main.daemon, "alive": main.is_alive(), "type": type(main).__name__,
        "repr": repr(main).replace(str(main.ident), "N"),
        "enumerate": [thread.name for thread in threading.enumerate()],
        "count": threading.active_count(),
        "dangling": sorted(thread.name for thread in threading._dangling),
        "specification": re.sub("0x[0-9a-f]+", "at", repr(threading.__spec__)),
        "loader": type(threading.__loader__).__name__, "is in it": threading.__spec__.loader is threading.__loader__,
        "finders": [re.sub("0x[0-9a-f]+", "at", repr(finder)) for finder in sys.meta_path],
    }


def of_signals():
    came = []
    signal.signal(signal.SIGUSR2, lambda *_: came.append(1))
    os.kill(os.getpid(), signal.SIGUSR2)
    time.sleep(0.001)
    before = signal.set_wakeup_fd(-1)
    return [came, before]


def of_asyncio():
    import asyncio

    came = []
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.add_signal_handler(signal.SIGUSR2, came.append, 1)
    loop.call_soon(os.kill, os.getpid(), signal.SIGUSR2)
    loop.call_later(0.05, loop.stop)
    loop.run_forever()
    loop.close()
    asyncio.set_event_loop(None)
    return came


def of_default_loop():
    """Only the main thread gets one without asking for it."""
    import asyncio

    try:
        asyncio.get_event_loop().close()
        return "has one"
    except (RuntimeError, DeprecationWarning) as error:
        return str(error)


def of_pools():
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(2).submit(pow, 2, 10).result()  # is ended at the exit


def of_fork():
    import threading

    child = os.fork()
    if not child:
        main = threading.main_thread()
        fine = main is threading.current_thread() and threading.enumerate() == [main]
        os._exit(0 if fine else 1)
    return os.waitpid(child, 0)[1]


def at_the_end():
    import atexit
    import threading

    def late():
        threading.main_thread().join()
        time.sleep(0.1)
        os.write(1, b"a thread that is no daemon\n")

    atexit.register(os.write, 1, b"at exit\n")
    threading.Thread(target=late).start()


signal.signal(signal.SIGUSR1, over)
try:
    os.write(1, b"ready\n")
    wait(sys.argv[1])
except Over:
    pass
signal.signal(signal.SIGUSR1, signal.SIG_DFL)

import json  # noqa: E402: modules that use threading come after the tested code

found = {test.__name__: test() for test in (of_threading, of_signals, of_asyncio, of_default_loop, of_pools)}
if sys.version_info < (3, 12):  # from then on, fork() warns of any thread of the process
    found["of_fork"] = of_fork()
print(json.dumps(found, sort_keys=True), flush=True)
at_the_end()
