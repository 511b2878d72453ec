# SPDX-License-Identifier: GPL-3.0-or-later
"""Dies in the way that a line of its stdin names, always in a function die()."""

import faulthandler
import os
import signal
import sys
import threading
import time

BAD = 8  # an unmapped address
CODE = {"ill": b"\x0f\x0b", "fpe": b"\x31\xc9\x31\xd2\x31\xc0\xf7\xf1", "overflow": b"\xe8\xfb\xff\xff\xff"}


def native(name):
    """A function of machine code."""
    import ctypes
    import mmap

    area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(CODE[name])
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    keep.append(area)
    return ctypes.CFUNCTYPE(None)(address)


def libc():
    import ctypes

    return ctypes.CDLL(None)


def die(how, marker):
    if how in CODE:
        native(how)()
    elif how == "segv_gil":
        import ctypes

        ctypes.string_at(BAD)
    elif how == "segv":
        libc().strlen(BAD)
    elif how == "bus":
        import ctypes
        import mmap
        import tempfile

        with tempfile.TemporaryFile() as file:
            file.truncate(4096)
            area = mmap.mmap(file.fileno(), 4096)
            address = ctypes.addressof(ctypes.c_char.from_buffer(area))
            file.truncate(0)
            ctypes.string_at(address)
    elif how == "abort":
        os.abort()
    elif how == "free":
        libc().free(ctypes_pointer())
    elif how == "raise":
        raise ValueError("no luck at %d" % marker)
    else:
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(60)


def ctypes_pointer():
    import ctypes

    keep.append(ctypes.create_string_buffer(256))
    return ctypes.c_void_p(ctypes.addressof(keep[-1]) + 17)


keep = []


def sleeper():
    waiting = "sleeps"
    time.sleep(1000 + len(waiting))


def spinner():
    turns = 0
    while True:
        turns += 1


def in_main(how):
    die(how, 41)


def in_thread(how):
    thread = threading.Thread(target=die, args=(how, 41), name="dying")
    thread.start()
    thread.join()


def in_two_threads(how):
    libc()
    threads = [threading.Thread(target=die, args=(how, 41 + n), name="dying-%d" % n) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_child(how):
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        die(how, 41)
    status = os.waitpid(pid, 0)[1]
    print(pid, status & 127, flush=True)


def main():
    for word in sys.argv[1:]:
        if word == "faulthandler":
            faulthandler.enable()
        elif word == "hoard":
            import asyncio, decimal, json, urllib.request  # noqa: F401 (much that is reached)
            keep.append([{str(i): [bytes(300)]} for i in range(100000)])
        else:
            threading.Thread(target=globals()[word], name=word, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        where, _, how = line.strip().partition(" ")
        print("dying", flush=True)
        globals()["in_" + where](how)


main()
