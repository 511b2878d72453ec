# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that sleep at known places; the program prints, as JSON, Python's own data of them."""
import json
import sys
import threading
import traceback


class Worker:
    def __init__(self, number, ready):
        self.number = number
        self.ready = ready

    def descend(self, depth, text):
        if depth:
            return self.descend(depth - 1, text + "x")
        self.ready.release()
        threading.Event().wait()


def told():
    """{thread: [[function, line]…]}, innermost first, of all threads but this one."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    own = threading.get_ident()
    return {names[ident]: [[frame.f_code.co_name, line]
                           for frame, line in reversed(list(traceback.walk_stack(frame))[::-1])]
            for ident, frame in sys._current_frames().items() if ident != own}


def main():
    count = int(sys.argv[1])
    ready = threading.Semaphore(0)
    for number in range(count):
        worker = Worker(number, ready)
        thread = threading.Thread(target=worker.descend, args=(number, ""), name="w%d" % number)
        thread.daemon = True
        thread.start()
    for _ in range(count):
        ready.acquire()
    while True:
        before = told()
        if before == told() and all(stack[0][0] in ("wait", "acquire") for stack in before.values()):
            break
    print("ready " + json.dumps(before).replace(" ", ""))
    sys.stdout.flush()
    sys.stdin.read()


main()
