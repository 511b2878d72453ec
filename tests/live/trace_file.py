# SPDX-License-Identifier: GPL-3.0-or-later
"""Chrome's trace events, as strictly as Perfetto takes them: it drops slices of a thread that overlap, and
events that lack something."""
import json

KEYS = {"X": {"ph": str, "name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "dur": (int, float)},
        "M": {"ph": str, "name": str, "pid": int, "tid": int, "args": dict}}
NAMES = ("process_name", "thread_name")


class Wrong(AssertionError):
    """Content that a viewer would refuse, or show as something else."""


def check(right, *what):
    if not right:
        raise Wrong(*what)


def ns(microseconds):
    return round(1000 * microseconds)


class Trace:
    """`slices` of each thread, [(begin, end, name, category)] by (pid, tid), in nanoseconds, each before
    its nested ones; `names` of processes and threads."""

    def __init__(self, data):
        check(isinstance(data, dict) and set(data) == {"displayTimeUnit", "otherData", "traceEvents"}, "members")
        check(data["displayTimeUnit"] in ("ms", "ns"), "unit")
        self.slices, self.names, self._read = {}, {}, {}
        for event in data["traceEvents"]:
            self._event(event)
        for thread, slices in self.slices.items():
            check(("thread_name", *thread) in self.names, "a thread without a name", thread)
            check(any(key[:2] == ("process_name", thread[0]) for key in self.names), "a process without a name")
            self._nested(slices)
        for slices in self._read.values():
            self._nested(slices)

    def _event(self, event):
        check(event.get("ph") in KEYS, "phase", event)
        for key, kind in KEYS[event["ph"]].items():
            check(isinstance(event.get(key), kind) and not isinstance(event[key], bool), key, event)
        check(set(event) <= {*KEYS[event["ph"]], "args"} and isinstance(event.get("args", {}), dict), event)
        check(event["pid"] > 0 and event["tid"] >= 0, "ids", event)
        if event["ph"] == "M":
            check(event["name"] in NAMES and set(event["args"]) == {"name"}, event)
            check(isinstance(event["args"]["name"], str), event)
            key = (event["name"], event["pid"], event["tid"])
            check(key not in self.names, "named twice", event)
            self.names[key] = event["args"]["name"]
            return
        check(event["ts"] >= 0 and event["dur"] >= 0, "times", event)
        check(event["cat"] in ("python", "native", "note", "state"), event)
        begin = ns(event["ts"])
        self.slices.setdefault((event["pid"], event["tid"]), []).append(
            (begin, begin + ns(event["dur"]), event["name"], event["cat"]))
        # As speedscope adds them, as doubles, and Perfetto, as whole nanoseconds.
        for reader, convert in (("speedscope", float), ("perfetto", lambda value: int(value * 1000.0))):
            begin, took = convert(event["ts"]), convert(event["dur"])
            self._read.setdefault((reader, event["pid"], event["tid"]), []).append(
                (begin, begin + took, event["name"], event["cat"]))

    @staticmethod
    def _nested(slices):
        open_ends, last = [], 0
        for begin, end, name, category in slices:
            check(begin >= last, "times go back", name)
            last = begin
            while open_ends and open_ends[-1][0] <= begin:
                open_ends.pop()
            check(not open_ends or end <= open_ends[-1][0], "slices overlap", name)
            check(not open_ends or open_ends[-1][1] != "state", "a state has nothing inside", name)
            open_ends.append((end, category))


def read(path):
    return Trace(json.loads(path.read_text()))
