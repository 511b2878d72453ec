# SPDX-License-Identifier: GPL-3.0-or-later
"""LLDB: its process as the core wants it, and its commands made of the core's."""

import os
import signal

import lldb

from . import lldb_break, lldb_pretty
from .core import commands, extensions, facts, importer, link_map
from .core.debugger import COLORS, FORMATS, SWITCH, Debugger, status_field, traced_by_us
from .core.errors import Problem

SETTINGS = {"format": "how 'probing query' shows results: " + ", ".join(FORMATS),
            "color": "when colours are used: auto follows LLDB's use-color; on; off",
            "max-string": "how many bytes of a text are shown",
            "pretty": "whether LLDB's own 'frame variable' shows what pointers to objects point "
                      "to: on, off"}


# Stops that the user asked for, and signals that are none of them.
CHOSEN = (lldb.eStopReasonBreakpoint, lldb.eStopReasonWatchpoint, lldb.eStopReasonTrace,
          lldb.eStopReasonPlanComplete, lldb.eStopReasonException, lldb.eStopReasonExec)
UNCHOSEN_SIGNALS = (signal.SIGINT, signal.SIGSTOP, signal.SIGTRAP, signal.SIGURG)


class Lldb(Debugger):
    name = "lldb"

    def __init__(self):
        Debugger.__init__(self)
        self.debugger = None
        self.result = None  # of the command that runs
        self.module = None  # where LLDB looks for classes

    def begin(self, debugger, result):
        self.debugger, self.result = debugger, result

    def begin_value(self, value):
        """The same for a value that LLDB shows."""
        self.debugger = value.GetTarget().GetDebugger()

    def target(self):
        return self.debugger.GetSelectedTarget()

    def process(self):
        return self.target().GetProcess()

    def pid(self):
        process = self.process()
        alive = process.IsValid() and process.GetState() not in (
            lldb.eStateExited, lldb.eStateDetached, lldb.eStateUnloaded, lldb.eStateInvalid)
        return process.GetProcessID() if alive else 0

    def core_path(self):
        # LLDB does not say what its core file is called.
        return "" if "core" in (self.process().GetPluginName() or "") else None

    def machine(self):
        return self.target().GetTriple().split("-")[0]

    def tids(self):
        return [thread.GetThreadID() for thread in self.process()]

    INTERRUPT = "process interrupt"

    def all_stopped(self):
        # It has stopped a moment before its threads can be asked.
        return self.process().GetState() in (
            lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateSuspended) and self.thread() is not None

    def read(self, address, length):
        error = lldb.SBError()
        data = self.process().ReadMemory(address, length, error)
        return data if error.Success() and data else b""

    def registers(self, tid, names):
        found = {}
        if tid is None:
            return found
        frame = self.process().GetThreadByID(tid).GetFrameAtIndex(0)
        for name in names if frame.IsValid() else ():
            register = frame.FindRegister(name)
            if register.IsValid() and register.GetValue() is not None:
                found[name] = register.GetValueAsUnsigned()
        return found

    def facts(self):
        return self._fact

    def _fact(self, name):
        if name == "task":
            return facts.numbers_text(self.tids())
        if name == "exe":
            path = self.target().GetExecutable().fullpath
            return path.encode("utf-8", "surrogateescape") if path else None
        if name == "maps":
            return mappings(self.target(), self.read)
        parts = name.split("/")
        if len(parts) == 3 and parts[0] == "task" and parts[2] == "stat":
            thread = self.process().GetThreadByID(int(parts[1]))
            state = "?" if self.core_path() == "" else "t"
            return facts.stat_text(int(parts[1]), thread.GetName(), state)
        return None

    def thread(self):
        thread = self.process().GetSelectedThread()
        return thread.GetThreadID() if thread.IsValid() else None

    def position(self):
        frame = self.process().GetSelectedThread().GetFrameAtIndex(0)
        return self.process().GetProcessID(), self.thread(), frame.GetPC(), frame.GetSP()

    def chosen(self):
        return any(thread.GetStopReason() in CHOSEN or
                   thread.GetStopReason() == lldb.eStopReasonSignal and
                   thread.GetStopReasonDataAtIndex(0) not in UNCHOSEN_SIGNALS
                   for thread in self.process())

    def runs(self):
        return self.process().GetUniqueID(), self.process().GetStopID(False)

    def unchanged(self):
        # LLDB has no event for writes to memory; a core's is not written.
        process = self.process()
        return (process.GetUniqueID(), self.settings.max_string) \
            if self.core_path() is not None else None

    def interrupted(self):
        return self.debugger is not None and self.debugger.GetCommandInterpreter().WasInterrupted()

    def moment(self):
        process = self.process()
        return process.GetUniqueID(), process.GetStopID(True)

    def native(self, address):
        target = self.target()
        kind = target.FindFirstType("PyObject")
        if not kind.IsValid():
            kind = target.GetBasicType(lldb.eBasicTypeVoid)
        return target.CreateValueFromExpression("object", "(%s *)%#x" % (kind.GetName(), address))

    def add_command(self, name):
        add_command(self.debugger, self.module, name, make_command(name))

    def watch(self, function):
        lldb_break.watch(self.target(), function)

    def select_native(self, pc, nth):
        thread = self.process().GetSelectedThread()
        frames = physical_frames(thread)
        index = 0
        if pc is not None:
            same = [i for i, (at, _) in enumerate(frames) if at == pc]
            if nth >= len(same):
                return None
            index = same[nth] + 1
        if index >= len(frames):
            return None
        chosen = frames[index][1]
        thread.SetSelectedFrame(chosen.GetFrameID())
        return chosen.GetFrameID(), chosen.GetFunctionName() or "at %#x" % chosen.GetPC()

    def control(self):
        from .lldb_run import LldbControl
        return LldbControl(self.debugger)

    def stop_at(self, address):
        lldb_break.stop_at(self.target(), address)

    def attached(self):
        # What LLDB starts is its child, or its helper's.
        pid = self.pid()
        return not traced_by_us(pid) or status_field(pid, "PPid") != status_field(pid, "TracerPid")

    def marks(self):
        return lldb_break.MARKS

    def mark(self, wanted, told):
        return lldb_break.mark(self, wanted, told)

    def unmark(self, number):
        lldb_break.unmark(number)

    def resume(self):
        debugger = self.debugger
        asynchronous = debugger.GetAsync()
        debugger.SetAsync(False)
        try:
            self.process().Continue()  # "process continue" would show the place in C
        finally:
            debugger.SetAsync(asynchronous)

    def stop_no_more(self):
        lldb_break.stop_no_more(self.target())

    def is_terminal(self):
        return os.isatty(1)

    def styled(self):
        return self.debugger.GetUseColor()

    def width(self):
        return self.debugger.GetTerminalWidth() if self.is_terminal() else 0

    def write(self, text):
        if self.result is None:  # no command of ours, but a script
            return print(text, end="")
        self.result.PutCString(text.encode("utf-8", "backslashreplace").decode().rstrip("\n"))

    def warn(self, text):
        if self.result is None:
            return print("probing: " + text)
        self.result.AppendWarning("probing: " + text)


def physical_frames(thread):
    """[(pc, frame)] without inlined functions, which precede the frame that they are in: the first
    of them has its pc."""
    found, pc = [], None
    for frame in thread:
        pc = frame.GetPC() if pc is None else pc
        if not frame.IsInlined():
            found.append((pc, frame))
            pc = None
    return found


def file_regions(target):
    """The parts of files that are mapped, by what LLDB has loaded."""
    found = []
    for module in target.module_iter():
        path = module.file.fullpath or ""
        for section in module.section_iter():
            start, size = section.GetLoadAddress(target), section.GetFileByteSize()
            if start == lldb.LLDB_INVALID_ADDRESS or not size or not path.startswith("/") or \
                    not (section.GetName() or "").startswith("PT_LOAD"):
                continue
            allowed = section.GetPermissions()
            flags = facts.flags_of(allowed & lldb.ePermissionsReadable,
                                   allowed & lldb.ePermissionsWritable,
                                   allowed & lldb.ePermissionsExecutable)
            found.append(facts.part_of_file(start, size, flags, section.GetFileOffset(), path))
    return found


def told_regions(target):
    """What LLDB says is mapped; without offsets in files, and for a core without files."""
    listed, region = target.GetProcess().GetMemoryRegions(), lldb.SBMemoryRegionInfo()
    for index in range(listed.GetSize()):
        if listed.GetMemoryRegionAtIndex(index, region) and region.IsMapped():
            flags = facts.flags_of(region.IsReadable(), region.IsWritable(), region.IsExecutable())
            yield facts.Region(region.GetRegionBase(), region.GetRegionEnd(), flags, 0,
                               region.GetName() or "")


def unknown_regions(target, read):
    """Files that LLDB has not found: behind a gdbserver, versions after 14 know the program alone."""
    headers = [module.GetObjectFileHeaderAddress().GetLoadAddress(target)
               for module in target.module_iter()]
    loaded = [address for address in headers if address != lldb.LLDB_INVALID_ADDRESS]
    return link_map.loaded_regions(read, loaded[0]) if len(loaded) == 1 else []


def mappings(target, read):
    """The text of "maps". A core leaves out what is unchanged in its file: that is added."""
    parts, regions = file_regions(target), list(told_regions(target))
    parts += unknown_regions(target, read)
    for region in regions:
        for part in parts:
            if part.start < region.end and region.start < part.end:
                region.path = region.path or part.path
                region.offset = max(0, part.offset + region.start - part.start)
                break
    regions += [part for part in parts if not any(
        part.start < region.end and region.start < part.end for region in regions)]
    return facts.maps_text(regions) if regions else None


FACE = Lldb()


class CtrlC:
    """Ctrl-C is KeyboardInterrupt in a command of ours, which LLDB keeps for itself; its own handler
    is C, which only C can put back."""

    def __enter__(self):
        import ctypes
        import signal
        self._libc, self._number = ctypes.CDLL(None), int(signal.SIGINT)
        self._before = ctypes.create_string_buffer(256)  # struct sigaction
        self._libc.sigaction(self._number, None, self._before)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        except ValueError:
            pass  # not on the main thread, to which Ctrl-C goes

    def __exit__(self, *_):
        self._libc.sigaction(self._number, self._before, None)


def make_command(name):
    cls = commands.find(name)

    class Made:
        def __init__(self, debugger, _):
            pass

        def __call__(self, debugger, words, exe_ctx, result):
            FACE.begin(debugger, result)
            try:
                with CtrlC():
                    cls().run(FACE, words)
            except Problem as problem:
                result.SetError("probing: %s" % problem)
            except KeyboardInterrupt:
                result.SetError("probing: interrupted")
            finally:
                FACE.result = None

        def get_short_help(self):
            return cls.summary

        def get_long_help(self):
            return cls.help()

    return Made


class Set:
    """LLDB has no parameters for plugins: a command takes their place."""

    def __init__(self, debugger, _):
        pass

    def __call__(self, debugger, words, exe_ctx, result):
        FACE.begin(debugger, result)
        name, _, value = words.strip().partition(" ")
        try:
            change(name, value.strip())
        except Problem as problem:
            result.SetError("probing: %s" % problem)
        finally:
            FACE.result = None

    def get_short_help(self):
        return "Set or show format, color, max-string or pretty."

    def get_long_help(self):
        lines = ["Usage: probing set [NAME [VALUE]]", ""]
        return "\n".join(lines + ["  %-11s %s" % item for item in sorted(SETTINGS.items())])


def change(name, value):
    settings = FACE.settings
    if name and name not in SETTINGS:
        raise Problem("there is no setting '%s': %s" % (name, ", ".join(sorted(SETTINGS))))
    if not value:
        for key in [name] if name else sorted(SETTINGS):
            FACE.write("%-11s %s" % (key, getattr(settings, key.replace("-", "_"))))
        return
    allowed = {"format": FORMATS, "color": COLORS, "pretty": SWITCH}.get(name)
    if allowed and value not in allowed:
        raise Problem("%s is one of %s" % (name, ", ".join(allowed)))
    if not allowed:
        if not value.isdigit() or int(value) < 1:
            raise Problem("max-string is a number of bytes from 1 on")
        value = int(value)
    setattr(settings, name.replace("-", "_"), value)
    if name == "pretty":
        lldb_pretty.switch(FACE.debugger, value == "on")


def install(debugger, module):
    """Makes the commands known to LLDB; @module is where it looks for classes."""
    debugger.HandleCommand("command container add -h 'Look at Python from the inside of LLDB.' "
                           "probing")
    classes = {}
    for name in commands.NAMES:
        classes[name] = make_command(name)
        classes.update((alias, classes[name]) for alias in commands.find(name).aliases)
    classes["set"] = Set
    for name, cls in classes.items():
        add_command(debugger, module, name, cls)
    FACE.debugger, FACE.module = debugger, module
    importer.install(FACE)
    lldb_break.install(module, FACE)
    lldb_pretty.install(debugger, module, FACE)
    extensions.load(FACE)


def add_command(debugger, module, name, cls):
    attribute = "Command_" + name.replace("-", "_")
    setattr(module, attribute, cls)
    debugger.HandleCommand("command script add -c %s.%s probing %s"
                           % (module.__name__, attribute, name))
