# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: its inferior as the core wants it, and its commands and parameters made of the core's."""

import os
import re
import sys

import gdb

from .core import commands, extensions, facts, importer
from .core.debugger import COLORS, FORMATS, SWITCH, Debugger, traced_by_us
from .core.errors import Problem
from .gdb_files import NEEDS_PACKETS, Files, sends_packets
from .gdb_threads import Selection, find_thread, tid_of


# The text of 'info program' at a stop of the user.
CHOSEN = re.compile(r"^It stopped (after being stepped|at (a )?breakpoint|at signal (?!SIG(INT|STOP|TRAP|URG)\b))", re.M)
# Of a system call: its number and arguments, where the kernel shows them, and where it was made.
CALL = {"x86_64": ["orig_rax", "rdi", "rsi", "rdx", "r10", "r8", "r9", "rsp", "rip"],
        "aarch64": ["sp", "pc"]}
NO_CALL = 2 ** 64 - 1


class Gdb(Debugger):
    name = "gdb"
    _threads = ()

    def pid(self):
        return gdb.selected_inferior().pid

    def core_path(self):
        # gdb takes long to list its files: with their sections, of which there are thousands. From
        # gdb 12 on the kind of connection shows whether it is a core.
        connection = getattr(gdb.selected_inferior(), "connection", None)
        if hasattr(connection, "type") and connection.type != "core":
            return None
        # gdb has no Python function for the name of its core file.
        text = gdb.execute("info files", False, True)
        match = re.search(r"[Cc]ore dump file:\n\t`(.*)', file type", text)
        return os.path.realpath(match.group(1)) if match else None

    def machine(self):
        name = gdb.selected_inferior().architecture().name()
        return "x86_64" if name == "i386:x86-64" else name

    def tids(self):
        return [tid_of(thread) for thread in gdb.selected_inferior().threads()]

    INTERRUPT = "interrupt -a"

    def all_stopped(self):
        # Each list of threads is a request to a gdbserver: facts() goes on with this one.
        self._threads = gdb.selected_inferior().threads()
        return all(thread.is_stopped() for thread in self._threads)

    def read(self, address, length):
        try:
            return gdb.selected_inferior().read_memory(address, length).tobytes()
        except gdb.MemoryError:
            return b""

    def registers(self, tid, names):
        thread = find_thread(tid)
        if thread is None or not thread.is_stopped():
            return {}
        with Selection():
            thread.switch()
            return frame_registers(gdb.newest_frame(), names)

    def facts(self):
        files = Files(gdb.selected_inferior())

        def fact(name):
            if name == "task":
                return facts.numbers_text(map(tid_of, self._threads))
            if name.startswith("task/") and name.endswith("/comm"):
                return files.thread_name(int(name.split("/")[1]))
            if name.startswith("task/") and name.endswith("/syscall"):
                return self._call(int(name.split("/")[1]), files.read(name))
            if name.startswith("ns/"):
                return files.link(name)
            return exe_path() if name == "exe" else files.read(name)

        return fact

    def _call(self, tid, text):
        """The @text of "task/TID/syscall", or what registers say: after a call of a function, a
        gdbserver gives them back to the kernel only when the thread goes on."""
        words = (text or b"").split()
        if len(words) != 3:  # "-1 SP PC": in no call
            return text
        names = CALL.get(self.machine(), [])
        found = self.registers(tid, names)
        if len(found) != len(names) or not names or found[names[-1]] == int(words[2], 16):
            return text
        values = ["%#x" % found[name] for name in names]
        number = found[names[0]] if len(names) > 2 else NO_CALL
        parts = ["-1"] + values[-2:] if number == NO_CALL else ["%d" % number] + values[1:]
        return (" ".join(parts) + "\n").encode()

    def thread(self):
        thread = gdb.selected_thread()
        return tid_of(thread) if thread and thread.is_valid() else None

    def position(self):
        thread = gdb.selected_thread()
        if thread is None or not thread.is_stopped():
            return None
        frame = gdb.newest_frame()
        return self.pid(), tid_of(thread), frame.pc(), int(frame.read_register("sp"))

    def chosen(self):
        return bool(CHOSEN.search(gdb.execute("info program", False, True)))

    def runs(self):
        from .gdb_run import RUNS
        return RUNS[0], self.pid()

    def unchanged(self):
        # gdb notifies the printer of later changes, see gdb_pretty.py.
        inferior = gdb.selected_inferior()
        held = self.settings.pretty == "on" and self.all_stopped()
        return (inferior.num, inferior.pid, self.settings.max_string) if held else None

    def moment(self):
        from .gdb_script import moment
        return moment()

    def native(self, address):
        from .gdb_script import native
        return native(address)

    def add_command(self, name):
        make_command(name)

    def watch(self, function):
        from .gdb_script import watch
        watch(function)

    def select_native(self, pc, nth):
        thread = gdb.selected_thread()
        if thread is None or not thread.is_stopped():
            return None
        frame, number = gdb.newest_frame(), 0
        while pc is not None and frame is not None:
            if frame.type() != gdb.INLINE_FRAME:
                nth -= frame.pc() == pc
                if nth < 0:
                    break
            frame, number = frame.older(), number + 1
        if pc is not None and frame is not None:
            frame, number = frame.older(), number + 1
        # Inlined functions are parts of the frame that they are in.
        while frame is not None and frame.type() == gdb.INLINE_FRAME:
            frame, number = frame.older(), number + 1
        if frame is None:
            return None
        frame.select()
        return number, frame.name() or "at %#x" % frame.pc()

    def control(self):
        from .gdb_run import GdbControl
        return GdbControl()

    def stop_at(self, address):
        from .gdb_break import stop_at
        stop_at(self, address)

    def resume(self):
        gdb.execute("continue")

    def attached(self):
        return gdb.selected_inferior().was_attached

    def mark(self, wanted, told):
        from .gdb_break import mark
        return mark(self, wanted, told)

    def marks(self):
        from .gdb_break import users
        return users()

    def is_on(self, number):
        from .gdb_break import is_on
        return is_on(number)

    def switch(self, number, on):
        from .gdb_break import switch
        switch(number, on)

    def unmark(self, number):
        from .gdb_break import unmark
        unmark(number)

    def deleted(self):
        from .gdb_break import deleted
        return deleted()

    def cannot_ask(self):
        return None if traced_by_us(self.pid()) or sends_packets() else NEEDS_PACKETS

    def stop_no_more(self):
        from .gdb_break import stop_no_more
        stop_no_more()

    def is_terminal(self):
        return sys.__stdout__ is not None and os.isatty(1)

    def styled(self):
        try:
            return bool(gdb.parameter("style enabled"))
        except RuntimeError:
            return False

    def width(self):
        return gdb.parameter("width") or 0

    def write(self, text):
        gdb.write(text.encode("utf-8", "backslashreplace").decode("utf-8"))

    def warn(self, text):
        gdb.write("probing: %s\n" % text, gdb.STDERR)


def frame_registers(frame, names):
    found = {}
    for name in names:
        try:
            found[name] = int(frame.read_register(name)) & 0xffffffffffffffff
        except (ValueError, gdb.error):
            pass
    return found


def exe_path():
    """The program, as the machine that it runs on calls it."""
    path = gdb.current_progspace().filename
    if not path:
        return None
    prefix = "target:"
    return (path[len(prefix):] if path.startswith(prefix) else path).encode()


FACE = Gdb()


def run(name, words):
    """Runs a command; what goes wrong is one line."""
    try:
        commands.find(name)().run(FACE, words)
    except Problem as problem:
        raise gdb.GdbError("probing: %s" % problem)
    except gdb.error as error:
        raise gdb.GdbError("probing: gdb says: %s" % error)
    except KeyboardInterrupt:
        raise gdb.GdbError("probing: interrupted")


class Prefix(gdb.Command):
    """The first words of commands; @bare is called with what is none of them."""

    def __init__(self, name, doc, bare):
        self.__doc__ = doc
        self.bare = bare
        gdb.Command.__init__(self, name, gdb.COMMAND_STACK, prefix=True)

    def invoke(self, words, from_tty):
        self.bare(words)


def no_command(words):
    if words:
        raise gdb.GdbError("probing: there is no command '%s': 'help probing' lists them"
                           % words.split()[0])
    gdb.execute("help probing")


def no_setting(words):
    raise gdb.GdbError("probing: 'help set probing' lists what can be set")


def show_settings(words):
    if words:
        raise gdb.GdbError("probing: there is no setting '%s'" % words)
    for name in ("color", "format", "max-string", "pretty"):
        gdb.write("%-11s %s\n" % (name, gdb.parameter("probing " + name)))


def make_command(name):
    cls = commands.find(name)

    class Made(gdb.Command):
        __doc__ = cls.help()

        def __init__(self):
            gdb.Command.__init__(self, "probing " + name, gdb.COMMAND_STACK)

        def invoke(self, words, from_tty):
            run(name, words)

        def complete(self, text, word):
            return completions(cls, text, word)

    Made()
    for alias in cls.aliases:
        gdb.execute("alias -- probing %s = probing %s" % (alias, name))


def completions(cls, text, word):
    """gdb asks twice; first, without a word, how it is to divide the line into words."""
    if word is None:
        return None
    try:
        from .core.completion import complete  # here: most sessions go without
        last, found = complete(FACE, cls, text)
    except (Problem, gdb.error, KeyboardInterrupt):
        return []
    # For gdb a word also begins behind most marks, as in "python.thr".
    return [each[len(last) - len(word):] for each in found]


class Function(gdb.Function):
    """A convenience function; what it does is loaded when it is first called."""

    def __init__(self, name, doc):
        self.__doc__ = doc
        self._name = name
        gdb.Function.__init__(self, "probing_" + name)

    def invoke(self, *arguments):
        from . import gdb_script
        try:
            return getattr(gdb_script, self._name)(FACE, *arguments)
        except (Problem, ValueError, TypeError) as problem:
            raise gdb.GdbError("probing: %s" % problem)


def make_functions():
    Function("local", """A variable of the selected Python frame, or of one by its number:
$probing_local("step"), $probing_local("step", 2). Numbers and texts are gdb's; anything else is
a pointer to the object.""")
    Function("thread", """The number that gdb gives a thread, by its name in Python; 0: there is none.
$_thread == $probing_thread("worker-3")""")


PRINTER = []  # made when it is first wanted


def switch_pretty(on):
    from .gdb_pretty import Printer  # here: it is not loaded before it is wanted
    if not PRINTER:
        PRINTER.append(Printer(FACE))
    PRINTER[0].switch(on)


class Setting(gdb.Parameter):
    """One of `set probing …`."""

    def __init__(self, name, kind, initial, values, doc):
        self.set_doc = "Set " + doc
        self.show_doc = "Show " + doc
        self.__doc__ = "What results of probing look like."
        self.attribute = name.replace("-", "_")
        if values:
            gdb.Parameter.__init__(self, "probing " + name, gdb.COMMAND_STACK, kind, values)
        else:
            gdb.Parameter.__init__(self, "probing " + name, gdb.COMMAND_STACK, kind)
        self.value = initial

    def get_set_string(self):
        if self.attribute == "max_string" and self.value < 1:
            self.value = FACE.settings.max_string
            raise gdb.GdbError("probing: max-string is a number of bytes from 1 on")
        setattr(FACE.settings, self.attribute, self.value)
        if self.attribute == "pretty":
            switch_pretty(self.value == "on")
        return ""

    def get_show_string(self, value):
        return value


def install():
    """Makes the commands known to gdb."""
    Prefix("probing", "Look at Python from the inside of gdb.", no_command)
    Prefix("set probing", "Settings of probing.", no_setting)
    Prefix("show probing", "Settings of probing.", show_settings)
    for name in commands.NAMES:
        make_command(name)
    importer.install(FACE)
    make_functions()
    settings = FACE.settings
    Setting("format", gdb.PARAM_ENUM, settings.format, list(FORMATS),
            "how 'probing query' shows results.")
    Setting("color", gdb.PARAM_ENUM, settings.color, list(COLORS),
            "when colours are used: auto follows 'set style enabled'.")
    Setting("max-string", gdb.PARAM_ZINTEGER, settings.max_string, None,
            "how many bytes of a text are shown.")
    Setting("pretty", gdb.PARAM_ENUM, settings.pretty, list(SWITCH),
            "whether gdb's own 'print' shows what pointers to objects point to.")
    extensions.load(FACE)
