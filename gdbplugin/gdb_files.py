# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: files of the machine that a gdbserver is on."""

import os
import re

import gdb

from .core import facts
from .core.debugger import traced_by_us

# Why files cannot be read before gdb has stopped: its commands would end the user's 'continue'.
NEEDS_PACKETS = "before the process has stopped, its files cannot be read behind a gdbserver: gdb 12 or " \
    "later can"
CHUNK = 8192  # bytes: what comes fits a packet, also when half of it has to be escaped
# The kernel gives them in one piece, which ends with a line: what is less than was asked for is all.
WHOLE = re.compile("(task/[0-9]+/)?(stat|status|syscall|schedstat)$")
# The last line of "maps" where there is one: no address is behind it.
LAST = re.compile(b"^ffffffffff600000-[^\n]*\n\\Z", re.MULTILINE)
# Names in which nothing has to be written in another way.
THREAD = re.compile(b'<thread id="(?:p([0-9a-f]+)\\.)?([0-9a-f]+)"[^>]* name="([ !#-%\'-;=@-~]+)"')
ESCAPED = re.compile(b"}(.)", re.DOTALL)


class Silent:
    """In its `with`, gdb is asked by requests alone, and by none of its commands."""

    active = 0

    def __enter__(self):
        Silent.active += 1

    def __exit__(self, *_):
        Silent.active -= 1


def sends_packets():
    return hasattr(getattr(gdb.selected_inferior(), "connection", None), "send_packet")


class Files:
    """The files in /proc/PID of an inferior; only while no other code asks gdb for files."""

    def __init__(self, inferior):
        self._pid = inferior.pid
        self._folder = "/proc/%d/" % inferior.pid
        connection = getattr(inferior, "connection", None)
        # From gdb 12 on the requests themselves can be sent, some times faster than gdb's command.
        self._connection = connection if hasattr(connection, "send_packet") else None
        # Whether the stub's process for file requests was chosen. With a breakpoint it was.
        self._chosen = bool(Silent.active)
        self._names = None  # {tid: name of the thread}, as the stub lists them

    def read(self, name):
        """None if it cannot be had."""
        data = None
        if traced_by_us(self._pid):
            return own_copy(self._folder + name)
        if self._connection:
            try:
                data = self._requests(name)
            except gdb.error:
                pass
        if data is None and not Silent.active:
            data = copied(self._folder + name)
            if data is None and name == "maps":
                data = mappings()
        return data

    def link(self, name):
        """Where a link leads; None also if the requests themselves cannot be sent."""
        try:
            if self._connection:
                self._choose()
                length, data = self._packet("vFile:readlink:" + self._path(name))
                return data if length == len(data) else None
        except gdb.error:
            pass
        return None

    def thread_name(self, tid):
        """The text of "task/TID/comm"; None also if the requests themselves cannot be sent."""
        if self._connection is None:
            return None
        if self._names is None:
            self._names = self._listed_names()
        return self._names.get(tid) or self.read("task/%d/comm" % tid)

    def _listed_names(self):
        """One request for those of all threads. A stub writes some characters as others: a name that
        may have such ones is left out."""
        text, more = b"", b"m"
        while more == b"m":
            try:
                answer = self._send("qXfer:threads:read::%x,%x" % (len(text), CHUNK))
            except gdb.error:
                return {}
            more, text = answer[:1], text + answer[1:]
            if not answer[1:] and more == b"m":
                return {}
        return {int(tid, 16): name + b"\n" for pid, tid, name in THREAD.findall(text)
                if not pid or int(pid, 16) == self._pid} if more == b"l" else {}

    def _send(self, text):
        """What is answered."""
        answer = self._connection.send_packet(text.encode()) or b""
        return ESCAPED.sub(lambda found: bytes((found.group(1)[0] ^ 0x20,)), answer)

    def _packet(self, text):
        """(number, data) that is answered; a negative number is an error."""
        head, _, data = self._send(text).partition(b";")
        try:
            return int(head[1:].split(b",")[0], 16) if head[:1] == b"F" else -1, data
        except ValueError:
            return -1, b""

    def _choose(self):
        """Files as the stub itself sees them. gdb, which remembers whose were asked for last, has to
        choose them: it does for its own command, here with a file that there is none of."""
        if not self._chosen:
            self._chosen = True
            try:
                gdb.execute("remote get %snone /dev/null" % self._folder, False, True)
            except gdb.error:
                pass

    def _path(self, name):
        return (self._folder + name).encode().hex()

    def _requests(self, name):
        """The file, by as few requests as it takes."""
        self._choose()
        file, _ = self._packet("vFile:open:%s,0,0" % self._path(name))
        if file < 0:
            return None
        pieces, at = [], 0
        while True:
            length, data = self._packet("vFile:pread:%x,%x,%x" % (file, CHUNK, at))
            if length <= 0 or length != len(data):
                break
            pieces.append(data)
            at += length
            if is_end(name, data):
                length = 0
                break
        self._packet("vFile:close:%x" % file)
        return b"".join(pieces) if length == 0 else None


def own_copy(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def is_end(name, data):
    """Whether nothing can follow, which saves to ask for it."""
    if name == "maps":
        return bool(LAST.search(data))
    return len(data) < CHUNK and data.endswith(b"\n") and bool(WHOLE.match(name))


def copied(path):
    """A file by gdb's own command."""
    import tempfile  # here: loading it takes as long as all of ours
    with tempfile.TemporaryDirectory(prefix="probing-") as folder:
        copy = os.path.join(folder, "fact")
        try:
            gdb.execute("remote get %s %s" % (path, copy), False, True)
            with open(copy, "rb") as file:
                return file.read()
        except (gdb.error, OSError):
            return None


def mappings():
    """What gdb itself can find out of what is mapped."""
    regions = []
    try:
        text = gdb.execute("info proc mappings", False, True)
    except gdb.error:
        return None
    for line in text.splitlines():
        match = re.match(r"\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+"
                         r"([r-][w-][x-])\S\s*(.*)", line)
        if match:
            start, end, offset = (int(match.group(i), 16) for i in (1, 2, 3))
            regions.append(facts.Region(start, end, match.group(4), offset,
                                        match.group(5).strip()))
    return facts.maps_text(regions) if regions else None
