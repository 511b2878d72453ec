# SPDX-License-Identifier: GPL-3.0-or-later
"""Events, spans and steps: rows of python.trace_event and training_logs.

From Python 3.7 on, the agent's library has event() and span() as functions of C, which are several
times as fast; those of Python here do what the others leave to them, and all before 3.7.
"""

import functools
import inspect
import itertools
import json
import os
import random
import struct
import sys
import time

import probing_startup

from . import _rings, _watch
from ._rings import INTEGER, INTERNED, NULL, REAL, START, TEXT, Off, Ring, encode

EVENTS = ("python.trace_event", "record text, name text, span_id integer, parent_id integer, "
          "step integer, duration real [ms], attributes text")
STEPS = ("main.training_logs", "epoch integer, step integer, loss real, lr real, grad_norm real, "
         "duration real [ms], metrics text")
EVENT, BEGIN, END = "event", "span_begin", "span_end"
UNKNOWN = -2 ** 63
NOT_CHOSEN = -1  # the number of a span that is not recorded, nor what happens in it

LABEL = struct.Struct("IIqIIq").pack
REST = struct.Struct("IIqIIqIIqIIdIIq").pack

rings = {}
events = None  # None before the first one, False if there can be none
current_step = None
last_step_at = None
next_sample = 0

try:
    from contextvars import ContextVar
    inner = ContextVar("probing.span", default=None)
    get_inner, set_inner = inner.get, inner.set
except ImportError:  # Python 3.6: threads only
    import threading
    local = threading.local()

    def get_inner():
        return getattr(local, "span", None)

    def set_inner(span):
        local.span = span


def number_spans():
    """Children after fork() continue with numbers of their own."""
    global ids
    ids = itertools.count(os.getpid() << 32 | 1)


number_spans()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=number_spans)


def ring_of(table):
    """Its ring, or None if there can be none: that is said once, and the program runs on."""
    try:
        return rings[table]
    except KeyError:
        pass
    try:
        rings[table] = Ring(*table)
    except (Off, OSError, probing_startup.StartError) as error:
        rings[table] = None
        if not isinstance(error, Off):
            probing_startup.say("%s: nothing is recorded" % getattr(error, "strerror", error))
    return rings[table]


def plain(value):
    """What JSON cannot hold: a number if it is like one (numpy, torch), or else its repr()."""
    try:
        return float(value)
    except Exception:
        pass
    try:
        return repr(value)
    except Exception as error:
        return "<%s: repr() raised %s>" % (type(value).__name__, type(error).__name__)


def to_json(attributes):
    return json.dumps(attributes, default=plain)


class Events:
    """python.trace_event, with the first two cells of its rows made once for each name."""

    def __init__(self, ring):
        self.ring, self.handle, self.append = ring, ring.handle, ring.append
        self.labels = {kind: {} for kind in (EVENT, BEGIN, END)}
        self.kinds = {kind: ring.name(kind) for kind in self.labels}

    def label(self, kind, name):
        """None if there is no room for the name in the ring's texts."""
        place = self.ring.name(name)
        if place is None:
            return None
        label = LABEL(INTERNED, 0, self.kinds[kind], INTERNED, 0, place)
        self.labels[kind][name] = label
        return label

    def write(self, kind, name, span, parent, duration, attributes):
        data = encode(to_json(attributes)) if attributes else b""
        label = self.labels[kind].get(name) or self.label(kind, name)
        if label is None:
            text = encode(name)
            label = LABEL(INTERNED, 0, self.kinds[kind], TEXT, len(text), id(text) + START)
        step = current_step
        rest = REST(INTEGER if span else NULL, 0, span or 0,
                    INTEGER if parent else NULL, 0, parent or 0,
                    NULL if step is None else INTEGER, 0, step or 0,
                    NULL if duration is None else REAL, 0, duration or 0.0,
                    TEXT if data else NULL, len(data), id(data) + START)
        return self.append(self.handle, 0, label + rest) == 0


def sample_memory(step):
    """Writes a row of memory_usage; nothing else has to wake the process for it."""
    library = _rings.loaded()
    if library is not None:
        library.probing_memory_sample(sys.getallocatedblocks(), step)


def sample_if_due():
    global next_sample
    now = time.monotonic()
    if now >= next_sample:
        next_sample = now + 1
        sample_memory(UNKNOWN if current_step is None else current_step)


def record(kind, name, span, parent, duration, attributes):
    global events
    if events is None:
        ring = ring_of(EVENTS)
        events = ring is not None and Events(ring)
    if not events:
        return False
    written = events.write(kind, name, span, parent, duration, attributes)
    sample_if_due()
    return written


def chosen(parent):
    """True if what happens within the span `parent` is recorded."""
    if parent is not None:
        return parent != NOT_CHOSEN
    library = _rings.loaded()
    if library is None:
        return False
    rate = library.probing_config_number(b"probing.sample_rate")
    return rate >= 1 or random.random() < rate


def event(name, **attributes):
    """Record an event with its time, thread and process in python.trace_event.

    True if it was written. False if it was not: probing.sample_rate leaves it out, it was too long,
    which the ring counts, or nothing is recorded.
    """
    parent = get_inner()
    return chosen(parent) and record(EVENT, name, None, parent, None, attributes)


class Span:
    """`with probing.span("load", file=path):`, or a decorator of functions and coroutines."""

    __slots__ = ("name", "attributes", "id", "parent", "began")

    def __init__(self, name, attributes):
        self.name, self.attributes, self.id = name, attributes, None

    def __enter__(self):
        if self.id is not None:
            raise RuntimeError("the span %s was entered before" % self.name)
        self.parent = get_inner()
        self.id = next(ids) if chosen(self.parent) else NOT_CHOSEN
        set_inner(self.id)
        if self.id != NOT_CHOSEN:
            record(BEGIN, self.name, self.id, self.parent, None, self.attributes)
        self.began = time.perf_counter()
        return self

    def __exit__(self, kind, value, traceback):
        took = (time.perf_counter() - self.began) * 1000
        set_inner(self.parent)
        if self.id != NOT_CHOSEN:
            record(END, self.name, self.id, self.parent, took,
                   {"error": kind.__name__} if kind else None)
        return False

    def __call__(self, function):
        return decorate(self.name, self.attributes, function)


def decorate(name, attributes, function):
    attributes = attributes or {}
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def run(*args, **kwargs):
            with span(name, **attributes):
                return await function(*args, **kwargs)
    else:
        @functools.wraps(function)
        def run(*args, **kwargs):
            with span(name, **attributes):
                return function(*args, **kwargs)
    return run


def span(name, **attributes):
    """A piece of work: two rows in python.trace_event, when it begins and when it ends.

    Spans nest within a thread and within an asyncio task; a task begins within the span that made
    it. An exception is named in the attributes of the end, and passes through.
    """
    return Span(name, attributes)


def step(n=None, epoch=None, loss=None, lr=None, grad_norm=None, **metrics):
    """Record a training step in training_logs; events after it have its number.

    Without `n`, it is one more than that of the step before. Tensors are converted by float().
    """
    global current_step, last_step_at
    now = time.perf_counter()
    took = None if last_step_at is None else (now - last_step_at) * 1000
    last_step_at = now
    if n is None:
        n = 0 if current_step is None else current_step + 1
    current_step = int(n)
    ring = ring_of(STEPS)
    if ring is None:
        return False
    ring.library.probing_recorder_step(current_step)
    _watch.record(sys._getframe(1), current_step)
    sample_if_due()
    loss, lr, grad_norm = (None if each is None else float(each) for each in (loss, lr, grad_norm))
    return ring.write((epoch, current_step, loss, lr, grad_norm, took,
                       to_json(metrics) if metrics else None))


def open_events():
    """For the library: the number of the ring of events, -1 if there can be none."""
    ring = ring_of(EVENTS)
    return -1 if ring is None else ring.handle


def use_library():
    """Takes event() and span() from the library, if it has them for this Python."""
    global event, span
    library = _rings.loaded() if sys.version_info >= (3, 7) else None
    found = library and library.probing_recorder(
        {"inner": inner, "open": open_events, "sample": sample_memory, "event": event,
         "decorate": decorate, "to_json": to_json})
    if found:
        event, span = found["event"], found["span"]
        os.register_at_fork(after_in_child=library.probing_recorder_forked)


use_library()
