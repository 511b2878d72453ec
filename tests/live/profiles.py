# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of recordings share: running the command, and what it says."""
import json
import signal
import subprocess
import time

import support

PROGRAM = support.HERE / "programs" / "profiled.py"


class Recording:
    """`probing PID perf` in the background; it ends by itself or by Ctrl-C."""

    def __init__(self, pid, *options):
        self._process = subprocess.Popen(
            [support.BINARY, str(pid), "perf", *map(str, options)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self._process.pid

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def kill(self):
        self._process.kill()

    def end(self, timeout=120):
        """(exit code, stdout, stderr) when it has ended."""
        out, err = self._process.communicate(timeout=timeout)
        return self._process.returncode, out.decode(), err.decode()

    def result(self):
        code, out, err = self.end()
        assert code == 0, err
        return json.loads(out)

    def samples(self):
        """Waits until it samples: then its priority or its waiting shows it."""
        end = time.monotonic() + 20
        while "hrtimer_nanosleep" not in self._wchan():
            assert time.monotonic() < end and self._process.poll() is None, self.end()
            time.sleep(0.001)

    def _wchan(self):
        try:
            with open("/proc/%d/wchan" % self.pid, encoding="ascii") as file:
                return file.read()
        except OSError:
            return ""


def profile(pid, *options):
    """The result of a whole recording."""
    return Recording(pid, "--json", *options).result()


def counted(pid, tid=None, what=0):
    """Nanoseconds that a thread had a processor, or (1) waited for one, as the kernel counts."""
    with open("/proc/%d/task/%d/schedstat" % (pid, tid or pid), encoding="ascii") as file:
        return int(file.read().split()[what])


def shares(result):
    """Percent of the weight that each function has with all that it calls."""
    return {row["func"].rpartition(".")[2]: 100 * row["total_ns"] / result["weight_ns"]
            for row in result["functions"]}
