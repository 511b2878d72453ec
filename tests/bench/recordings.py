# SPDX-License-Identifier: GPL-3.0-or-later
"""How large a long recording becomes: a busy service is recorded for a minute, and those samples are
written as if so many hours passed (long_recording.c). Part of bench.py.
"""

import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS, RATE, HOURS = 60, 100, 48


class Service:
    """service.py and its clients."""

    def __init__(self, python):
        command = [python, str(HERE / "service.py")]
        self._server = subprocess.Popen(command + ["serve"], stdout=subprocess.PIPE, text=True)
        port = self._server.stdout.readline().strip()
        self._clients = subprocess.Popen(command + ["load", port])
        self.pid = self._server.pid
        while len(os.listdir("/proc/%d/task" % self.pid)) < 20:
            os.stat("/proc/%d/task" % self.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self._clients, self._server):
            process.kill()
            process.wait()
        self._server.stdout.close()


def spy_bytes(args, pid, path):
    """What py-spy's samples in order take of that time; its file grows with each sample."""
    spy = args.peer.get("py-spy")
    if not spy or subprocess.run(
            [spy, "record", "--pid", str(pid), "-d", str(SECONDS), "-r", str(RATE), "-f",
             "speedscope", "-o", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False).returncode:
        return None
    return os.path.getsize(path)


def page(args, python):
    with tempfile.TemporaryDirectory() as folder:
        short, out = os.path.join(folder, "short.profile"), os.path.join(folder, "long.profile")
        with Service(python) as service:
            subprocess.run([args.probing, str(service.pid), "perf", "-d", "%ds" % SECONDS, "-r",
                            str(RATE), "-o", short], stdout=subprocess.DEVNULL, check=True)
            spy = spy_bytes(args, service.pid, os.path.join(folder, "spy.json"))
        rows = subprocess.run([args.long_recording, short, str(HOURS), out],
                              stdout=subprocess.PIPE, check=True, text=True).stdout
    lines = ["", "### A recording of a busy web service of 20 threads at %d Hz" % RATE, "",
             "| hours | file, MB | memory of the process that writes it, MB |", "|---|---|---|"]
    for row in rows.splitlines():
        hours, size, memory = row.split()
        lines.append("| %s | %.1f | %.1f |" % (hours, int(size) / 1e6, int(memory) / 1024))
    if spy:
        lines.append("| %d, py-spy (speedscope), from its %d s | %.0f | – |" % (
            HOURS, SECONDS, spy * HOURS * 3600 / SECONDS / 1e6))
    return lines
