# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a bit of everything and checks all of it, until stdin says so; then prints the errors found.

Threads: memory (contents of the heap), sleeper (sleeps last long enough), queue and counter (locks),
echo and talker (a stream of numbered messages), waiter (calls with timeouts end by these, not early
and not by a signal), signals (counts the queued ones). The main thread gets SIGALRM all the time.
With a number as argument, so many more threads never rest, and note for how long none of them ran."""
import hashlib
import json
import os
import queue
import select
import signal
import socket
import sys
import threading
import time

KEPT = 100  # objects at a time
QUEUED = signal.SIGRTMIN + 1
GAP = 0.05  # seconds
clock, gaps = [0], []
wrong = []
counts = {}
over = threading.Event()
lock = threading.Lock()
shared = [0, 0]


def expect(condition, *what):
    if not condition and len(wrong) < 20:
        wrong.append(repr(what))


def memory():
    """Objects of many sizes, each with the sum of its contents."""
    kept = {}
    for step in range(10 ** 9):
        if over.is_set():
            break
        content = bytearray(os.urandom(16) * (1 + step * 37 % 3000))
        kept[step] = content, hashlib.sha1(content).digest(), [step] * (step % 50), {step: str(step)}
        if step >= KEPT:
            content, digest, numbers, names = kept.pop(step - KEPT)
            expect(hashlib.sha1(content).digest() == digest, "memory", step)
            expect(numbers == [step - KEPT] * ((step - KEPT) % 50), "list", step)
            expect(names == {step - KEPT: str(step - KEPT)}, "dict", step)
        counts["memory"] = step
        time.sleep(0.0002)


def sleeper():
    while not over.is_set():
        start = time.monotonic()
        time.sleep(0.004)
        expect(time.monotonic() - start >= 0.004, "sleep", time.monotonic() - start)
        counts["sleeper"] = counts.get("sleeper", 0) + 1


def adder():
    while not over.is_set():
        with lock:
            before = shared[0]
            time.sleep(0)
            shared[0] = before + 1
        shared_steps.put(1)
        counts["adder"] = counts.get("adder", 0) + 1
        time.sleep(0.001)


def taker():
    for step in iter(shared_steps.get, None):
        shared[1] += step


def exactly(stream, size):
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        if not more:
            return data
        data += more
    return data


def echo(stream):
    while True:
        data = stream.recv(4096)
        if not data:
            return
        stream.sendall(data)


def talker(stream):
    for step in range(10 ** 9):
        if over.is_set():
            break
        message = ("%08d" % step).encode() * 500
        stream.sendall(message)
        expect(exactly(stream, len(message)) == message, "message", step)
        counts["talker"] = step
        time.sleep(0.002)
    stream.shutdown(socket.SHUT_WR)


def waiter():
    silent, other = socket.socketpair()
    silent.settimeout(0.01)
    poll, epoll = select.poll(), select.epoll()
    poll.register(silent, select.POLLIN)
    epoll.register(silent, select.EPOLLIN)
    event = threading.Event()
    while not over.is_set():
        for name, wait in (("recv", lambda: silent.recv(1)), ("poll", lambda: poll.poll(10)),
                           ("epoll", lambda: epoll.poll(0.01)),
                           ("select", lambda: select.select([silent], [], [], 0.01)),
                           ("event", lambda: event.wait(0.01))):
            start = time.monotonic()
            try:
                result = wait()
                expect(result in ([], False, ([], [], [])), name, result)
            except socket.timeout:
                expect(name == "recv", name, "timed out")
            except OSError as error:
                expect(False, name, repr(error))
            # The kernel counts in ticks, and epoll in milliseconds.
            expect(time.monotonic() - start > 0.0085, name, time.monotonic() - start)
        counts["waiter"] = counts.get("waiter", 0) + 1
    other.close()


def signals():
    while not over.is_set():
        if signal.sigtimedwait([QUEUED], 0.05):
            counts["signals"] = counts.get("signals", 0) + 1


def busy():
    while not over.is_set():
        for _ in range(100):
            now = time.monotonic()
            if now - clock[0] > GAP:
                gaps.append(now - clock[0])
            clock[0] = now


def checked(target, *arguments):
    """No thread ends by an exception that it did not reckon with."""
    try:
        target(*arguments)
    except BaseException as error:
        expect(False, target.__name__, repr(error))


def alarm(*_):
    counts["alarms"] = counts.get("alarms", 0) + 1


shared_steps = queue.Queue()
signal.pthread_sigmask(signal.SIG_BLOCK, [QUEUED, signal.SIGALRM])
signal.signal(signal.SIGALRM, alarm)
one, two = socket.socketpair()
threads = [threading.Thread(target=checked, args=arguments, name=arguments[0].__name__, daemon=True)
           for arguments in [(memory,), (sleeper,), (adder,), (adder,), (taker,), (talker, two),
                             (echo, one), (waiter,), (signals,)]]
for thread in threads:
    thread.start()
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
while counts.get("memory", 0) < 10 * KEPT:  # it has as many as it will have
    time.sleep(0.01)
clock[0] = time.monotonic()
for number in range(int((sys.argv + ["0"])[1])):
    threads.append(threading.Thread(target=checked, args=(busy,), name="busy", daemon=True))
    threads[-1].start()
os.write(1, b"ready\n")
while True:
    try:
        if select.select([0], [], [], 0.02)[0]:
            break
    except InterruptedError:  # by SIGALRM, before 3.5
        pass
    counts["main"] = counts.get("main", 0) + 1
os.read(0, 1)
signal.setitimer(signal.ITIMER_REAL, 0)
while signal.sigtimedwait([QUEUED], 0.2):  # signals still pending
    counts["signals"] = counts.get("signals", 0) + 1
over.set()
for thread in sorted(threads, key=lambda thread: thread.name == "taker"):
    if thread.name == "taker":
        shared_steps.put(None)
    thread.join(20)
    expect(not thread.is_alive(), "thread goes on", thread.name)
expect(shared[0] == shared[1], "lost steps", shared)
expect(min(counts.values()) > 0, "nothing done", counts)
counts["gaps"] = gaps
os.write(1, (json.dumps([wrong, counts]) + "\n").encode())
