# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that count, and threads in system calls that a stop could end: interruptible.py FILE

The calls are made through ctypes, without Python's own repetition after EINTR. Numbers of the
shared file: 0 the loops of the main thread, 1 the ticks of a timer, 2 and 3 the loops of two
other threads; from 8 on for each call how often it was made and how often EINTR ended it.
"""
import ctypes
import errno
import mmap
import signal
import socket
import struct
import sys
import threading

CALLS = ["epoll_wait", "recv", "sigtimedwait", "poll", "nanosleep", "accept"]
TIME_MS = 20

libc = ctypes.CDLL(None, use_errno=True)
with open(sys.argv[1], "r+b") as file:
    numbers = mmap.mmap(file.fileno(), 0)


def add(index):
    struct.pack_into("<q", numbers, 8 * index, struct.unpack_from("<q", numbers, 8 * index)[0] + 1)


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def make_epoll_wait():
    descriptor = libc.epoll_create1(0)
    events = ctypes.create_string_buffer(64)
    return lambda: libc.epoll_wait(descriptor, events, 1, TIME_MS)


def with_timeout(one):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, TIME_MS * 1000))
    return one


def make_recv():
    pair = socket.socketpair()
    buffer = ctypes.create_string_buffer(16)
    with_timeout(pair[0])
    return lambda: libc.recv(pair[0].fileno(), buffer, 16, 0)


def make_accept():
    listening = with_timeout(socket.socket(socket.AF_UNIX))
    listening.bind("")
    listening.listen(1)
    return lambda: libc.accept(listening.fileno(), None, None)


def make_sigtimedwait():
    signals = ctypes.create_string_buffer(128)
    libc.sigemptyset(signals)
    libc.sigaddset(signals, int(signal.SIGUSR2))
    time = Timespec(0, TIME_MS * 1000000)
    return lambda: libc.sigtimedwait(signals, None, ctypes.byref(time))


def make_poll():
    return lambda: libc.poll(None, 0, TIME_MS)


def make_nanosleep():
    time = Timespec(0, TIME_MS * 1000000)
    return lambda: libc.nanosleep(ctypes.byref(time), None)


def call_forever(index, call):
    while True:
        if call() < 0 and ctypes.get_errno() == errno.EINTR:
            add(index + 1)
        add(index)


def count_forever(index):
    while True:
        add(index)


def start(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.daemon = True
    thread.start()


def main():
    mask = [signal.SIGALRM, signal.SIGUSR2]
    signal.pthread_sigmask(signal.SIG_BLOCK, mask)
    for i, name in enumerate(CALLS):
        start(call_forever, 8 + 2 * i, globals()["make_" + name]())
    start(count_forever, 2)
    start(count_forever, 3)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    signal.signal(signal.SIGALRM, lambda *_: add(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    print("ready " + " ".join(CALLS), flush=True)
    count_forever(0)


main()
