# SPDX-License-Identifier: GPL-3.0-or-later
"""A process with something for every table: threads, descriptors, limits, signals.

Prints what it knows of itself as one line of JSON, and sleeps until its stdin ends.
"""
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading

folder = sys.argv[1]
kept = {}


def keep(name, thing):
    kept[name] = thing
    return thing


def sockets():
    listening = keep("listening", socket.socket())
    listening.bind(("127.0.0.1", 0))
    listening.listen(5)
    keep("client", socket.create_connection(listening.getsockname()))
    keep("server", listening.accept()[0])
    udp = keep("udp", socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    unix = keep("unix", socket.socket(socket.AF_UNIX))
    unix.bind(os.path.join(folder, "listening.sock"))
    unix.listen(1)
    pair = socket.socketpair()
    keep("left", pair[0])
    keep("right", pair[1])
    for name in ("listening", "client", "server", "udp", "unix"):
        yield name, kept[name].getsockname()
    yield "peer", kept["client"].getpeername()


def files():
    file = keep("file", open(os.path.join(folder, "file"), "w+"))
    file.write("x" * 500)
    file.flush()
    file.seek(7)
    gone = keep("gone", open(os.path.join(folder, "gone"), "a"))
    os.unlink(gone.name)
    keep("folder", os.open(folder, os.O_RDONLY))
    keep("epoll", select.epoll())
    keep("null", open(os.devnull, "w"))
    reading, writing = os.pipe()
    # It ends with us, as no other process can write to the pipe then.
    keep("child", subprocess.Popen(["cat"], stdin=reading, stdout=subprocess.DEVNULL))
    os.close(reading)
    keep("pipe", writing)


def number(thing):
    return thing if isinstance(thing, int) else thing.fileno()


def limits():
    for name in dir(resource):
        if name.startswith("RLIMIT_") and name not in ("RLIMIT_OFILE",):
            soft, hard = resource.getrlimit(getattr(resource, name))
            yield name[len("RLIMIT_"):].lower(), [None if value == resource.RLIM_INFINITY else value
                                                  for value in (soft, hard)]


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE,
                       (321, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.nice(3)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # All threads have to block what is to stay pending; they begin as this one is.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    addresses = dict(sockets())
    files()
    tids, ready = [], threading.Barrier(4)

    def work():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        tids.append(threading.get_native_id())
        ready.wait()
        threading.Event().wait()

    for index in range(3):
        threading.Thread(target=work, name="worker-%d" % index, daemon=True).start()
    ready.wait()
    os.kill(os.getpid(), signal.SIGUSR2)
    child = kept.pop("child").pid
    print(json.dumps({
        "pid": os.getpid(), "ppid": os.getppid(), "pgid": os.getpgid(0), "sid": os.getsid(0),
        "uid": os.getuid(), "euid": os.geteuid(), "gid": os.getgid(), "egid": os.getegid(),
        "cwd": os.getcwd(), "argv": sys.argv, "exe": os.path.realpath("/proc/self/exe"),
        "environ": dict(os.environ), "limits": dict(limits()), "nice": os.nice(0),
        "cpus": sorted(os.sched_getaffinity(0)), "tids": tids, "child": child,
        "fds": {name: number(thing) for name, thing in kept.items()},
        "addresses": addresses, "version": sys.version.split()[0],
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "debug": hasattr(sys, "gettotalrefcount"),
    }), flush=True)
    sys.stdin.read()


main()
