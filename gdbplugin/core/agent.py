# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent in the process that a debugger holds: whether it is there, and loading it.

The debugger is the tracer, so `probing inject` of a shell cannot do it. One thread that is at a
safe place (core/hijack.py) is made to call dlopen() and the agent's start; nothing of Python.
"""

import os
import re

from . import control as run
from .command import open_session
from .debugger import need_process, traced_by_us
from .errors import Problem
from .hijack import check_loader, hijack

FILE = "libprobing-agent.so"
PAGE = 4096
RTLD_NOW = 2
_SYMBOLS = "SELECT name, address, module FROM native.symbols WHERE binding = 'global' AND (%s)"
_LIBC = re.compile(r"libc[.-]|libdl[.-]|ld-musl|libc\.musl")
BREAK_STOPS = "probing_agent_break_stops"
OWN = ("probing_agent_start", "probing_agent_debugger", "probing_agent_debugger_start",
       "probing_agent_debugger_here", "probing_agent_debugger_interrupt", "probing_agent_break_quiet", BREAK_STOPS)
NEEDED = ("dlopen", "dlsym", "dlclose", "dlerror", "mmap", "munmap")


def check(debugger, control, what):
    """Refuses what can run nothing."""
    if debugger.core_path() is not None:
        raise Problem("%s needs a process, and this is a core file, where nothing can run: "
                      "'probing print' and 'probing query' read it" % what)
    need_process(debugger.pid())
    # In non-stop mode, stopping all threads would not be enough.
    reason = control.obstacle()
    if reason:
        raise Problem("%s: %s" % (what, reason))
    if not debugger.all_stopped():
        raise Problem("%s needs all threads stopped, and some run: '%s' them first" % (
            what, debugger.INTERRUPT))
    status = read_status(debugger)
    if status and re.search(rb"^Seccomp:\s*[12]$", status, re.M):
        raise Problem("%s: the process has a seccomp filter, which may kill it for the calls that "
                      "this makes: 'probing print' and 'probing query' need none" % what)


def read_status(debugger):
    if traced_by_us(debugger.pid()):
        try:
            with open("/proc/%d/status" % debugger.pid(), "rb") as file:
                return file.read()
        except OSError:
            return None
    return debugger.facts()("status")


def symbols(session, names):
    """{name: address}"""
    # Names of glibc have versions: dlopen@@GLIBC_2.34.
    rows = session.query(_SYMBOLS % " OR ".join("name = '%s' OR name LIKE '%s@%%'" % (name, name)
                                                for name in names))
    found = {}
    for row in rows:
        name = row["name"].split("@")[0]
        if name.startswith("probing_") or _LIBC.match(os.path.basename(row["module"] or "")):
            found.setdefault(name, row["address"])
    return found


def agent_path():
    from .library import LIBRARY
    chosen = os.environ.get("PROBING_AGENT")
    here = os.path.dirname(os.path.realpath(LIBRARY._name))
    places = [chosen] if chosen else [os.path.join(here, FILE), os.path.join(here, "probing", FILE)]
    for path in places:
        if os.path.exists(path):
            return os.path.realpath(path)
    raise Problem("the agent's library is in none of %s: build or install it, or name it in "
                  "$PROBING_AGENT before the debugger starts" % ", ".join(places))


def load(debugger, control):
    """Loads the agent and starts it."""
    path = agent_path()
    if traced_by_us(debugger.pid()) and \
            not os.path.exists("/proc/%d/root%s" % (debugger.pid(), path)):
        raise Problem("the process does not see %s, which lies in another mount namespace: run "
                      "'probing -t %d inject' while no debugger holds it" % (path, debugger.pid()))
    if traced_by_us(debugger.pid()):
        check_loader(debugger)
    with open_session(debugger) as session:
        known = symbols(session, NEEDED)
    missing = [name for name in NEEDED if name not in known]
    if missing:
        raise Problem("the process has no %s: its C library is not dynamic, so nothing can be "
                      "loaded" % ", ".join(missing))
    thread = hijack(debugger, control)
    memory = thread.call(known["mmap"], 0, PAGE, run.PROT_READ_WRITE, run.MAP_PRIVATE_ANONYMOUS,
                         -1, 0)
    if -PAGE < memory <= 0:
        raise Problem("the process is out of memory")
    try:
        start(debugger, control, thread, known, memory, path)
    finally:
        thread.call(known["munmap"], memory, PAGE)


def start(debugger, control, thread, known, memory, path):
    control.write(memory, path.encode("utf-8", "surrogateescape") + b"\0")
    handle = thread.call(known["dlopen"], memory, RTLD_NOW)
    if not handle:
        text = text_at(debugger, thread.call(known["dlerror"]))
        raise Problem("the process cannot load %s: %s: on another machine it has to lie at the "
                      "same path, which $PROBING_AGENT may name" % (path, text))
    try:
        control.write(memory, b"probing_agent_start\0")
        function = thread.call(known["dlsym"], handle, memory)
        control.write(memory, b"\0")
        value = thread.call(function, memory)
    finally:
        thread.call(known["dlclose"], handle)
    if value < 0:
        raise Problem("the agent cannot start: %s" % os.strerror(-value))


def text_at(debugger, address):
    data = debugger.read(address, 512) if address else b""
    return data.split(b"\0")[0].decode("utf-8", "replace") or "for an unknown reason"


def need(debugger, control):
    """The same as find(); it is loaded if it is not there."""
    known = find(debugger)
    if not known:
        load(debugger, control)
        known = find(debugger)
    if not set(OWN) <= set(known):
        raise Problem("the agent in the process is of another version: 'probing eject' of a shell "
                      "takes it out")
    return known


def find(debugger):
    """{name: address} of what the agent exports, {} if it is not there."""
    with open_session(debugger) as session:
        return symbols(session, OWN)
