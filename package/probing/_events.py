# SPDX-License-Identifier: GPL-3.0-or-later
"""Events, spans and steps: rows of python.trace_event and training_logs."""

import functools
import inspect
import itertools
import json
import os
import struct
import time

import probing_startup

from ._rings import INTEGER, INTERNED, NULL, REAL, START, TEXT, Off, Ring, encode

EVENTS = ("python.trace_event", "record text, name text, span_id integer, parent_id integer, "
          "step integer, duration real [ms], attributes text")
STEPS = ("main.training_logs", "epoch integer, step integer, loss real, duration real [ms], "
         "metrics text")
EVENT, BEGIN, END = "event", "span_begin", "span_end"

LABEL = struct.Struct("IIqIIq").pack
REST = struct.Struct("IIqIIqIIqIIdIIq").pack

rings = {}
events = None  # None before the first one, False if there can be none
current_step = None
last_step_at = None

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


def record(kind, name, span, parent, duration, attributes):
    global events
    if events is None:
        ring = ring_of(EVENTS)
        events = ring is not None and Events(ring)
    return events and events.write(kind, name, span, parent, duration, attributes)


def event(name, **attributes):
    """Record an event with its time, thread and process in python.trace_event.

    True if it was written. False if it was too long, which the ring counts, or nothing is recorded.
    """
    return record(EVENT, name, None, get_inner(), None, attributes)


class Span:
    """`with probing.span("load", file=path):`, or a decorator of functions and coroutines."""

    __slots__ = ("name", "attributes", "id", "parent", "began")

    def __init__(self, name, attributes):
        self.name, self.attributes, self.id = name, attributes, None

    def __enter__(self):
        if self.id is not None:
            raise RuntimeError("the span %s was entered before" % self.name)
        self.id, self.parent = next(ids), get_inner()
        set_inner(self.id)
        record(BEGIN, self.name, self.id, self.parent, None, self.attributes)
        self.began = time.perf_counter()
        return self

    def __exit__(self, kind, value, traceback):
        took = (time.perf_counter() - self.began) * 1000
        set_inner(self.parent)
        record(END, self.name, self.id, self.parent, took,
               {"error": kind.__name__} if kind else None)
        return False

    def __call__(self, function):
        name, attributes = self.name, self.attributes
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def run(*args, **kwargs):
                with Span(name, attributes):
                    return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def run(*args, **kwargs):
                with Span(name, attributes):
                    return function(*args, **kwargs)
        return run


def span(name, **attributes):
    """A piece of work: two rows in python.trace_event, when it begins and when it ends.

    Spans nest within a thread and within an asyncio task; a task begins within the span that made
    it. An exception is named in the attributes of the end, and passes through.
    """
    return Span(name, attributes)


def step(n=None, epoch=None, loss=None, **metrics):
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
    return ring.write((epoch, current_step, None if loss is None else float(loss), took,
                       to_json(metrics) if metrics else None))
