# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface to a debugger: gdb's and LLDB's faces derive from Debugger."""

import os

from .errors import Problem


class Settings:
    """`set probing …`."""

    def __init__(self):
        self.format = "table"
        self.max_string = 4096
        self.color = "auto"
        self.pretty = "off"


COLORS = ("auto", "on", "off")
SWITCH = ("off", "on")
FIRST_ARGUMENT = {"x86_64": "rdi", "aarch64": "x0"}  # register of a call, by machine
FORMATS = ("table", "json", "ndjson", "csv", "tsv")


class Debugger:
    """One debugger, as the commands see it. All of it is called on the debugger's main thread."""

    name = None  # as the user calls it

    def __init__(self):
        self.settings = Settings()
        self.selection = None  # see core/frames.py
        self.own_stop = None  # (runs(), chosen()) after the last one of ours, see core/stops.py
        self.evaluators = {}  # {pid: thread of the agent}, see core/evaluator.py

    def pid(self):
        """Of the selected process; Problem if there is none."""
        raise NotImplementedError

    def core_path(self):
        """The core file that is open, "" if its path is not known, None if it is a process."""
        raise NotImplementedError

    def machine(self):
        """Of the process: "x86_64", "aarch64", or what it is called otherwise."""
        raise NotImplementedError

    def tids(self):
        """All threads of the process."""
        raise NotImplementedError

    def read(self, address, length):
        """Bytes of memory; fewer, or b"", if the rest cannot be read."""
        raise NotImplementedError

    def registers(self, tid, names):
        """{name: value} of a thread, as far as they are known."""
        raise NotImplementedError

    def facts(self):
        """A function that returns the content of /proc/PID/NAME on the process's machine, as bytes;
        None if it cannot be had. For as long as one command reads."""
        raise NotImplementedError

    INTERRUPT = "interrupt"  # the debugger's command that stops the process

    def all_stopped(self):
        """Whether every thread of the process is stopped."""
        raise NotImplementedError

    def thread(self):
        """The selected thread, as tid; None if there is none."""
        raise NotImplementedError

    def position(self):
        """Something that differs when the selected thread has run, or is another one; None while it
        runs."""
        raise NotImplementedError

    def chosen(self):
        """Whether the process is stopped where the user made it stop: at a breakpoint or
        watchpoint, after a step, or at a signal; not where it was when it was attached to or
        interrupted."""
        raise NotImplementedError

    def runs(self):
        """Something that differs when the process has run, or is another one."""
        raise NotImplementedError

    def unchanged(self):
        """Something that differs when the process has run or its memory was written; None if that
        is not known."""
        raise NotImplementedError

    def interrupted(self):
        """Whether a Ctrl-C came that the debugger does not hand to Python; asked often."""
        return False

    def moment(self):
        """Something that differs when the process has run, or is another one; cheap."""
        raise NotImplementedError

    def native(self, address):
        """The object there as the debugger's own kind of value."""
        raise NotImplementedError

    def add_command(self, name):
        """Makes one more command of core/commands."""
        raise NotImplementedError

    def watch(self, function):
        """Has it called at each stop, with why, the thread, the number of the breakpoint or None,
        and whether it is one of Python."""
        raise NotImplementedError

    def select_native(self, pc, nth):
        """Selects the C frame that called the @nth (from 0) of those at @pc; None: the innermost
        one. Gives its number and function, or None if there is no such frame."""
        raise NotImplementedError

    def control(self):
        """What runs something in the process: a Control (core/control.py)."""
        raise NotImplementedError

    def stop_at(self, address):
        """From now on, a thread of the process that comes to the address is at a breakpoint of
        Python: it stops, and core/breaks.py shows it. May be called again."""
        raise NotImplementedError

    def resume(self):
        """Lets the process run until something stops it, as the user's own 'continue' would."""
        raise NotImplementedError

    def cannot_ask(self):
        """Why no function of the user can be asked when a thread has come to a breakpoint; None."""
        return None

    def stop_no_more(self):
        """The end of that."""
        raise NotImplementedError

    # Breakpoints of Python as the user knows them, see core/marks.py.

    def attached(self):
        """Whether the process was there before."""
        raise NotImplementedError

    def marks(self):
        """All that the user has set."""
        raise NotImplementedError

    def mark(self, wanted, told):
        """Lists one, which the agent @told of, or which waits (None): the number that the user knows it by."""
        raise NotImplementedError

    def unmark(self, number):
        """Lists it no more."""
        raise NotImplementedError

    def switch(self, number, on):
        """The user has it stop, or not."""

    def is_on(self, number):
        """Whether it does, as far as the debugger has a say. Not while it holds the process for us."""
        return True

    def deleted(self):
        """The agent's numbers of those that the user has deleted from the debugger's list."""
        return []

    def is_terminal(self):
        raise NotImplementedError

    def styled(self):
        """Whether the debugger itself would use colours."""
        raise NotImplementedError

    def width(self):
        """Columns of the output; 0: as many as needed."""
        raise NotImplementedError

    def write(self, text):
        """Shows text, through the pager if the debugger has one."""
        raise NotImplementedError

    def warn(self, text):
        """Shows a line that is no result."""
        raise NotImplementedError

    def colored(self):
        if self.settings.color == "auto":
            return self.styled() and self.is_terminal() and not os.environ.get("NO_COLOR")
        return self.settings.color == "on"


def traced_by_us(pid):
    """Whether the process is on this machine, and held by this debugger or by its helper."""
    tracer = status_field(pid, "TracerPid")
    if not tracer:
        return False
    return tracer == os.getpid() or status_field(tracer, "PPid") == os.getpid()


def status_field(pid, name):
    """A number from /proc/PID/status; 0 if it cannot be read."""
    try:
        with open("/proc/%d/status" % pid, "rb") as file:
            for line in file:
                key, _, rest = line.partition(b":")
                if key == name.encode():
                    return int(rest.split()[0])
    except (OSError, ValueError, IndexError):
        pass
    return 0


def need_process(pid):
    if not pid:
        raise Problem("there is no process: attach to one, run one, or open a core file")
    return pid
