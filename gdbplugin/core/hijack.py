# SPDX-License-Identifier: GPL-3.0-or-later
"""The thread that is made to call functions of the C library. Which threads may be is the library's
answer (probing_hijackable() in lib/probing.h); here one of them is chosen."""

import os
import threading

from . import control as run
from .command import open_session
from .debugger import traced_by_us
from .errors import Problem

TRIES = 8  # to find a safe place
PASSES = ("waiting for a lock", "in a restartable sequence")  # why not, which is over soon
# For how long the process runs before it is looked at again, at first; then twice as long each time: on a
# busy machine its threads get no processor at once.
BREATH_SECONDS = 0.02


class Hijacked:
    """A thread that may be made to call functions, and whether alone."""

    def __init__(self, control, tid, alone):
        self.control, self.tid, self.alone = control, tid, alone

    def call(self, address, *arguments):
        return self.control.call(self.tid, address, arguments, self.alone)

    def call_for(self, seconds, address):
        return self.control.call(self.tid, address, (), self.alone, seconds)


def hijack(debugger, control):
    """A Hijacked thread; lets threads leave unsafe places, if it has to. A thread that has run
    alone is back where it was stopped, though a gdbserver's /proc shows that only once it runs
    on."""
    if not control.hijacked:
        found = find(debugger, control)
        if not found.alone:
            return found
        control.hijacked = found
    return control.hijacked


def only(debugger, control, tid):
    """This thread, if it is at a safe place."""
    with open_session(debugger) as session:
        threads = session.hijackable(True)
    own = next((each for each in threads if each.tid == tid), None)
    if own is None or own.why:
        raise Problem("no function may be called on thread %d, which is %s" % (tid, own.why if own else "unknown"))
    return Hijacked(control, tid, not any(each.why for each in threads))


def find(debugger, control):
    breath = BREATH_SECONDS
    for _ in range(TRIES):
        with open_session(debugger) as session:
            threads = session.hijackable()
        chosen = choose(threads, debugger.thread())
        if control.keeps:
            chosen = chosen_to_keep(threads, chosen, control.kept)
        if chosen:
            # Alone, unless another one may have a lock that is needed.
            return Hijacked(control, chosen.tid, not any(each.why for each in threads))
        place = next((each for each in threads if each.ways_out), None)
        if place:
            which, text = control.run(place.tid, place.ways_out, False)
        elif traced_by_us(debugger.pid()) and any(each.why.startswith(PASSES) for each in threads):
            which, text = breathe(debugger, control, threads[0].tid, breath)
            breath *= 2
        else:
            break
        if which == run.EXITED:
            raise Problem("the process ended meanwhile")
        if which == run.OTHER:
            raise Problem("the process was stopped by %s on the way to a place where a function "
                          "may be called: try again" % text)
    raise refusal(threads)


def breathe(debugger, control, tid, seconds):
    """Lets the process run for a moment. SIGURG, which is not passed on, ends that."""
    timer = threading.Timer(seconds, os.kill, (debugger.pid(), run.SIGURG))
    timer.start()
    try:
        return control.run(tid, (), False)
    finally:
        timer.cancel()
        timer.join()


def chosen_to_keep(threads, chosen, kept):
    """The same where the thread @kept does not run on, which others do unless all are safe."""
    if any(each.why for each in threads):
        chosen = next((each for each in threads if each.tid == kept and not each.why), None)
    if not chosen:
        raise Problem("thread %d would have to run on from where it is stopped before a function can be called "
                      "(%s): let the process run for a moment, and interrupt it" % (kept, reasons(threads)))
    return chosen


def choose(threads, preferred):
    """One that waits rather than one that runs, and then the @preferred one; None if there is
    none."""
    safe = [each for each in threads if not each.why]
    safe.sort(key=lambda each: (not each.in_call, each.tid != preferred))
    return safe[0] if safe else None


def refusal(threads):
    if not threads:
        return Problem("the process has no threads")
    return Problem("no thread is at a place where a function may be called (%s): let the process run for "
                   "a moment, and try again" % reasons(threads))


def reasons(threads):
    """Why not, each once, with the first of the threads that it is true of."""
    found = {}
    for each in threads:
        if each.why:
            found.setdefault(each.why, each.tid)
    return "; ".join("thread %d is %s" % (tid, why) for why, tid in list(found.items())[:3])


TYPES = {1: "char", 4: "int"}


def check_loader(debugger):
    """Refuses to load anything where the loader has a breakpoint. This debugger took it for its own
    when it was attached, and would again."""
    with open_session(debugger, direct=False) as session:
        found = session.left_breakpoints()
    if found:
        raise Problem("the dynamic loader has a breakpoint that a debugger has left, so to load a "
                      "library would end the process: that debugger was killed; 'gdb -p %d -batch%s' "
                      "puts it back, when this one is detached" % (
                          debugger.pid(), "".join(command(*each) for each in found)))


def command(address, length, original):
    return ' -ex "set var *(unsigned %s *)%#x = %#x"' % (TYPES[length], address, original)
