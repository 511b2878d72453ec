# SPDX-License-Identifier: GPL-3.0-or-later
"""What recording costs a Python program, beside the standard library's logging and OpenTelemetry's
SDK: microseconds of processor time for a call.

`make bench-events` prints it. OpenTelemetry is measured if it can be installed."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLS, ROUNDS = 200000, 5

MEASURE = """
import json, sys, time
def cost(function):
    best = 1e9
    for _ in range(%d):
        began = time.process_time()
        for _ in range(%d):
            function()
        best = min(best, time.process_time() - began)
    return best / %d * 1e6
def empty():
    pass
base = cost(empty)
def show(**functions):
    print(json.dumps({name: round(cost(function) - base, 3) for name, function in functions.items()}))
""" % (ROUNDS, CALLS, CALLS)

PROBING = MEASURE + """
import probing
def span():
    with probing.span("forward"):
        pass
losses = probing.table("losses", {"step": int, "loss": float})
show(event=lambda: probing.event("batch"), span=span,
     attributes=lambda: probing.event("batch", number=3, loss=0.5, phase="train"),
     row=lambda: losses.append(3, 0.5))
"""
LOGGING = MEASURE + """
import logging, os
handler = logging.FileHandler(os.devnull)
log = logging.getLogger("bench")
log.addHandler(handler)
log.setLevel(logging.INFO)
log.propagate = False
show(event=lambda: log.info("batch"), attributes=lambda: log.info("batch %s %s %s", 3, 0.5, "train"))
"""
OPENTELEMETRY = MEASURE.replace("range(200000)", "range(10000)").replace("/ 200000", "/ 10000") + """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
class Nowhere(SpanExporter):
    def export(self, spans):
        return SpanExportResult.SUCCESS
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Nowhere()))
tracer = provider.get_tracer("bench")
outer = tracer.start_span("outer")
def span():
    with tracer.start_as_current_span("forward"):
        pass
show(span=span, event=lambda: outer.add_event("batch"),
     attributes=lambda: outer.add_event("batch", {"number": 3, "loss": 0.5, "phase": "train"}))
"""


def measure(python, code, environment):
    done = subprocess.run([python, "-c", code], env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.decode())


def results(agent, peers, folder):
    """{name: {what: microseconds}}"""
    # Compiled, as pip leaves the package.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = folder + "/cache"
    ours = dict(os.environ, PROBING_DATA_DIR=folder, PROBING_AGENT=agent, PYTHONPATH=str(ROOT / "package"))
    found = {"probing": measure(sys.executable, PROBING, ours),
             "logging": measure(sys.executable, LOGGING, os.environ)}
    if peers:
        found["OpenTelemetry's SDK"] = measure(peers, OPENTELEMETRY, os.environ)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--agent", required=True)
    parser.add_argument("--peers", help="Python with opentelemetry-sdk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = results(options.agent, options.peers, folder)
    print("us of processor time   event   with 3 attributes   span     row")
    for name, result in found.items():
        print("%-20s" % name + "".join("%9s" % result.get(key, "-") + " " * extra for key, extra in (
            ("event", 7), ("attributes", 7), ("span", 0), ("row", 0))))


if __name__ == "__main__":
    main()
