# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads the agent into this process at start-up, as $PROBING says.

The start-up hook imports this module only if there is a variable with PROB in its name. An error is one line on
stderr: the program always runs. All versions of Python 3 from 3.4 on can read this file.
"""

import os
import sys

AGENT = "libprobing-agent.so"
RTLD_NOW, RTLD_NOLOAD = 2, 4
AT_SECURE = 23  # of <elf.h>
EPERM = 1  # the module errno may not be the program's
chosen_agent = None
hides = False  # the agent's thread from forks
seen = False  # site runs the hooks of a virtual environment twice


class StartError(Exception):
    """Why the agent does not run."""


def start():
    """Does what PROBING, or else PROBE, asks for; never raises."""
    global seen
    if seen:
        return
    seen = True
    try:
        if sys.platform == "linux" and obeys_environment():
            tell_of_namesake()
            apply(os.environ.get("PROBING", os.environ.get("PROBE", "")))
    except Exception as error:
        say(str(error) or type(error).__name__)


def obeys_environment():
    """False if the environment must not control this process: Python ignores it (-E, -I), or the
    process has another user's rights, by setuid, setgid or a file's capabilities."""
    if sys.flags.ignore_environment or os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return False
    try:
        file = os.open("/proc/self/auxv", os.O_RDONLY)
    except OSError:
        return False  # the kernel hides it from those whose rights are others
    words = memoryview(os.read(file, 4096)).cast("L")
    os.close(file)
    return not any(words[at + 1] for at in range(0, len(words) - 1, 2) if words[at] == AT_SECURE)


def tell_of_namesake():
    """The older tool of this name obeys PROBING too, by a hook of its own."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in [here] + sys.path + folders_to_come():
        if str(folder).endswith(("site-packages", "dist-packages")) and os.path.exists(os.path.join(folder, "probing_hook.py")):
            say("%s has another tool named probing, too, which also obeys PROBING: 'pip uninstall probing', "
                "and install this one again" % folder)
            return


def folders_to_come():
    """Of the interpreter of a virtual environment, whose own come first: those that site adds after our hook."""
    if sys.prefix == sys.base_prefix or "site" not in sys.modules:
        return []
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), "rb") as file:
            lines = file.read().lower().replace(b" ", b"").split()
    except OSError:
        return []
    return sys.modules["site"].getsitepackages() if b"include-system-site-packages=true" in lines else []


def variable(name, default=None):
    """A variable of ours: all code that runs in a program reads it here (in C: agent/inside/environment.h)."""
    value = os.environ.get(name)
    return default if value is None or not obeys_environment() else value


def say(text):
    if sys.stderr is not None:
        sys.stderr.write("probing: %s\n" % text)


def apply(mode):
    """0, 1 or followed, 2 or nested, regex:PATTERN, SCRIPT, init:FILE[+MODE]."""
    if os.environ.get("PROBING_HOOK") == "0":
        return
    if mode.startswith("init:"):
        forget()
        file, _, mode = mode[len("init:"):].partition("+")
        run(file)
        if mode in ("2", "nested"):
            os.environ["PROBING"] = mode
    children = mode in ("2", "nested")
    if mode in ("1", "followed"):
        forget()
    handle_crashes(os.environ.get("PROBING_CRASH", ""))
    served = children or mode in ("1", "followed", "") or chosen(mode)
    if served and (mode or "PROBING_PORT" in os.environ):
        begin(children)


def begin(children):
    """Starts the agent, and what variables ask for besides: the same for every way of starting."""
    start_agent()
    if any(os.environ.get(name, "off") not in ("", "0", "off") for name in (
            "PROBING_TORCH_NAN", "PROBING_TORCH_PROFILING", "PROBING_WATCH", "PROBE_TORCH_EXPRS")):
        call_agent("probing_torch_apply", None)
    if children:
        follow_forks()
    # Children that have the agent too cannot be served at the same port.
    port = os.environ.pop("PROBING_PORT", None)
    if port:
        serve(port)


def serve(address):
    """Leaves a server process of the program `probing` in the background.

    "8080" is on this machine only; of several processes of a job, each takes the next port.
    """
    host, colon, port = address.rpartition(":")
    try:
        number = int(port)
        number += int(os.environ.get("LOCAL_RANK", 0)) if number else 0
    except ValueError:
        raise StartError("'%s' is no port" % address)
    words = [find_program_file(), str(os.getpid()), "inject", "--listen",
             "%s:%d" % (host if colon else "127.0.0.1", number)]
    # A token that the user did not choose must be printed.
    told = 1 if variable("PROBING_AUTH_TOKEN") else 2
    obeyed = dict(os.environ) if obeys_environment() else {
        name: value for name, value in os.environ.items() if not name.startswith("PROB")}
    child = os.fork() if sys.version_info < (3, 8) else 0
    if sys.version_info < (3, 8):
        if not child:
            start_child(words, told, obeyed)
    else:
        null = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)]
        child = os.posix_spawn(words[0], words, obeyed, file_actions=null + [
            (os.POSIX_SPAWN_DUP2, 0 if told == 1 else 2, 1)])
    if os.waitpid(child, 0)[1]:
        raise StartError("the process is not served: see the message before")


def start_child(words, told, obeyed):
    """In a child after fork(): becomes that program."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null if told == 1 else 2, 1)
        os.execve(words[0], words, obeyed)
    finally:
        os._exit(127)


def find_program_file():
    """The command: of this package, or the first of $PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, "..", "build"), os.path.join(here, "..", "..", "..", "bin"),
              os.path.join(here, "bin"), os.path.join(sys.prefix, "bin")]
    for folder in places + os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "probing")
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.normpath(path)
    raise StartError("the program 'probing' is neither beside the package nor in $PATH")


def launch(file, children):
    """What `probing launch` asks for, with this file of the agent."""
    global chosen_agent
    if not obeys_environment():
        return
    chosen_agent = file
    handle_crashes(os.environ.get("PROBING_CRASH", ""))
    begin(children)


def forget():
    """Children of this process start as usual."""
    for name in ("PROBING", "PROBE"):
        os.environ.pop(name, None)


def chosen(mode):
    """True if the mode names this program."""
    if mode in ("", "0"):
        return False
    program = find_program()
    if mode.startswith("regex:"):
        before = set(sys.modules)
        import re
        try:
            return re.search(mode[len("regex:"):], program) is not None
        except re.error as error:
            raise StartError("'%s' is not a regular expression: %s" % (mode[6:], error))
        finally:
            drop_modules(before)
    return program == mode or os.path.basename(program) == mode


def find_program():
    """The script as it was typed, or the name of the module after -m, or "-c", or ""."""
    with open("/proc/self/cmdline", "rb") as file:
        words = [os.fsdecode(word) for word in file.read().split(b"\0")[1:-1]]
    words.reverse()
    while words:
        word = words.pop()
        if not word.startswith("-") or word == "-":
            return word
        if word == "--check-hash-based-pycs" and words:
            words.pop()
        if word.startswith("--"):
            continue
        for number, letter in enumerate(word):
            rest = word[number + 1:]
            if letter == "c":
                return "-c"
            if letter == "m":
                return rest or (words.pop() if words else "")
            if letter in "WX":
                if not rest and words:
                    words.pop()
                break
    return ""


def run(file):
    """Runs the user's own file in a namespace of its own."""
    try:
        with open(file, "rb") as stream:
            code = compile(stream.read(), file, "exec")
        exec(code, {"__name__": "probing_init", "__file__": file})
    except Exception as error:
        raise StartError("%s: %s: %s" % (file, type(error).__name__, error))


def drop_modules(before):
    """What was imported since is not the program's: it may import its own."""
    for name in set(sys.modules) - before:
        del sys.modules[name]


def find_agent():
    said = chosen_agent or variable("PROBING_AGENT")
    here = os.path.dirname(os.path.abspath(__file__))
    places = [said] if said else [os.path.join(here, "probing", AGENT),
                                  os.path.join(here, "..", "build", AGENT)]
    for path in places:
        if os.path.exists(path):
            return os.path.realpath(path)
    raise StartError("the agent's library is not at %s: install probing again" % places[0])


def call_agent(name, argument):
    """Calls an exported function of the agent: an int. ctypes itself would take 5 ms to import."""
    before = set(sys.modules)
    try:
        import _ctypes
        library = _ctypes.dlopen(find_agent(), RTLD_NOW)
    except (ImportError, OSError) as error:
        raise StartError("the agent cannot be loaded: %s" % error)
    finally:
        drop_modules(before)
    try:
        return _ctypes.call_function(_ctypes.dlsym(library, name), (argument,))
    finally:
        _ctypes.dlclose(library)


def start_agent():
    """True if it was started, False if it runs already."""
    result = call_agent("probing_agent_start", b"")
    if result < 0:
        raise StartError("the agent cannot start: %s" % os.strerror(-result))
    if sys.version_info >= (3, 12):
        hide_from_forks()
    return result == 0


def hide_from_forks():
    """os.fork() warns of a second thread, from 3.12 on: the agent's is not there meanwhile."""
    global hides
    if hides:
        return
    hides = True
    before = set(sys.modules)
    import _ctypes
    drop_modules(before)
    path, call = find_agent(), _ctypes.call_function

    def run(name, *arguments):
        try:
            library = _ctypes.dlopen(path, RTLD_NOW | RTLD_NOLOAD)
        except OSError:
            return  # it was ejected
        try:
            call(_ctypes.dlsym(library, name), arguments)
        finally:
            _ctypes.dlclose(library)
    os.register_at_fork(before=lambda: run("probing_agent_park"),
                        after_in_parent=lambda: run("probing_agent_unpark", str(id(sys._getframe(1))).encode()))


def handle_crashes(mode):
    """1, or hold=SECONDS,size=BYTES,count=N,folder=PATH: what is left out is as usual."""
    if mode in ("", "0"):
        return
    words = [] if mode == "1" else mode.split(",")
    result = call_agent("probing_agent_crash", "\n".join(map(crash_setting, words)).encode())
    if result < 0:
        folder = "".join(word[len("folder="):] for word in words if word.startswith("folder="))
        why = os.strerror(-result)
        if folder and -result == EPERM:
            why = "%s is not this user's alone" % folder
        raise StartError("crash records cannot be written: %s" % why)


def crash_setting(word):
    """As the agent takes it: milliseconds and bytes."""
    key, _, value = word.partition("=")
    try:
        if key == "hold":
            value = int(float(value.rstrip("s")) * 1000)
        elif key == "size" and value[-1:] in "KMG":
            value = int(value[:-1]) << {"K": 10, "M": 20, "G": 30}[value[-1]]
        elif key not in ("size", "count", "folder"):
            raise ValueError
    except (ValueError, KeyError):
        raise StartError("PROBING_CRASH is 1, or has hold=SECONDS,size=BYTES,count=N,folder=PATH")
    return "%s=%s" % (key, value)


def follow_forks():
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=start_forked)


def start_forked():
    try:
        start_agent()
    except Exception as error:
        say(str(error))
