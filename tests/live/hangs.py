# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that hang, each at the line with the mark, by what ends them: `--hang`, or only `--timeout`
since they wait for a time, compute, or poll."""
import contextlib
import ctypes
import os
import select
import socket
import subprocess
import textwrap
import threading

MARK = "# HERE"
HANG, TIME = "hang", "time"

LOCKS = {
    "a lock twice": "from threading import *\nl = Lock()\nl.acquire()\nl.acquire()  # HERE",
    "with a lock twice": "from threading import *\nl = Lock()\nwith l:\n    with l:  # HERE\n        pass",
    "two locks in both orders": """
        from threading import *
        a, b, g = Lock(), Lock(), Barrier(2)
        def f(x, y):
            with x:
                g.wait()
                with y:  # HERE
                    pass
        Thread(target=f, args=(a, b)).start()
        f(b, a)""",
    "two RLocks in both orders": """
        from threading import *
        a, b, g = RLock(), RLock(), Barrier(2)
        def f(x, y):
            with x:
                g.wait()
                with y:  # HERE
                    pass
        Thread(target=f, args=(a, b)).start()
        f(b, a)""",
    "an RLock of a thread that ended": """
        from threading import *
        r = RLock()
        t = Thread(target=r.acquire)
        t.start()
        t.join()
        r.acquire()  # HERE""",
    "a lock whose holder waits": """
        from threading import *
        l, e, g = Lock(), Event(), Event()
        def f():
            with l:
                g.set()
                e.wait()  # HERE
        Thread(target=f).start()
        g.wait()
        with l:
            pass""",
    "Event.wait": "from threading import *\nEvent().wait()  # HERE",
    "Condition.wait": "from threading import *\nc = Condition()\nwith c:\n    c.wait()  # HERE",
    "Condition.wait_for": "from threading import *\nc = Condition()\nwith c:\n    c.wait_for(lambda: False)  # HERE",
    "a semaphore": "from threading import *\ns = Semaphore(1)\ns.acquire()\ns.acquire()  # HERE",
    "a barrier": "from threading import *\nBarrier(2).wait()  # HERE",
    "Thread.join": """
        from threading import *
        def f():
            Event().wait()
        t = Thread(target=f)
        t.start()
        t.join()  # HERE""",
    "a thread that is not a daemon at the end": """
        from threading import *
        def f():
            Event().wait()  # HERE
        Thread(target=f).start()""",
    "atexit": """
        import atexit
        from threading import *
        def f():
            Event().wait()  # HERE
        atexit.register(f)""",
    "a lock in a signal handler": """
        import os, signal
        from threading import *
        l = Lock()
        def handler(*_):
            l.acquire()  # HERE
        signal.signal(signal.SIGUSR1, handler)
        with l:
            os.kill(os.getpid(), signal.SIGUSR1)""",
    "a lock in a finalizer": """
        from threading import *
        l = Lock()
        class C:
            def __del__(self):
                with l:  # HERE
                    pass
        with l:
            C()""",
    "a lock of logging": """
        import logging
        from threading import *
        h = logging.StreamHandler()
        logging.getLogger().addHandler(h)
        h.acquire()
        def f():
            logging.error("never")  # HERE
        t = Thread(target=f)
        t.start()
        t.join()""",
    "an import that waits for its own": """
        import sys
        from threading import *
        if __name__ == "__main__":
            sys.modules.pop("hung", None)
            import hung
        else:
            t = Thread(target=lambda: __import__("hung"))
            t.start()
            t.join()  # HERE""",
    "a context manager's exit": """
        from threading import *
        class C:
            def __enter__(self):
                self.t = Thread(target=Event().wait)
                self.t.start()
            def __exit__(self, *_):
                self.t.join()  # HERE
        with C():
            pass""",
    "a lock beside a monitor that runs": """
        import time
        from threading import *
        def monitor():
            while True:
                time.sleep(0.02)
        Thread(target=monitor, daemon=True).start()
        a, b, g = Lock(), Lock(), Barrier(2)
        def f(x, y):
            with x:
                g.wait()
                with y:  # HERE
                    pass
        Thread(target=f, args=(a, b)).start()
        f(b, a)""",
}
QUEUES = {
    "Queue.get": "import queue\nqueue.Queue().get()  # HERE",
    "Queue.put": "import queue\nq = queue.Queue(1)\nq.put(1)\nq.put(2)  # HERE",
    "Queue.join": "import queue\nq = queue.Queue(1)\nq.put(1)\nq.join()  # HERE",
    "SimpleQueue.get": "import queue\nqueue.SimpleQueue().get()  # HERE",
    "Future.result": "import concurrent.futures as c\nc.Future().result()  # HERE",
    "a pool that waits for itself": """
        import concurrent.futures as c
        pool = c.ThreadPoolExecutor(1)
        def outer():
            return pool.submit(int).result()  # HERE
        pool.submit(outer).result()""",
    "a pool that is left": """
        import concurrent.futures as c
        import threading
        def f():
            threading.Event().wait()  # HERE
        with c.ThreadPoolExecutor(1) as pool:
            pool.submit(f)""",
    "concurrent.futures.wait": "import concurrent.futures as c\nc.wait([c.Future()])  # HERE",
}
FILES = {
    "a pipe that is read": "import os\nr, w = os.pipe()\nos.read(r, 1)  # HERE",
    "a pipe that is full": "import os\nr, w = os.pipe()\nos.write(w, bytes(1 << 20))  # HERE",
    "a file object of a pipe": "import os\nr, w = os.pipe()\nopen(r).readline()  # HERE",
    "a pair of sockets": "import socket\na, b = socket.socketpair()\na.recv(1)  # HERE",
    "a peer that does not answer": """
        import socket
        s = socket.create_server(("127.0.0.1", 0))
        c = socket.create_connection(s.getsockname())
        c.recv(1)  # HERE""",
    "a peer that does not read": """
        import socket
        s = socket.create_server(("127.0.0.1", 0))
        c = socket.create_connection(s.getsockname())
        c.sendall(bytes(1 << 26))  # HERE""",
    "select": "import os, select\nr, w = os.pipe()\nselect.select([r], [], [])  # HERE",
    "poll": "import os, select\nr, w = os.pipe()\np = select.poll()\np.register(r)\np.poll()  # HERE",
    "epoll": """
        import os, select
        r, w = os.pipe()
        e = select.epoll()
        e.register(r, select.EPOLLIN)
        e.poll()  # HERE""",
    "a lock on a file": """
        import fcntl, tempfile
        with tempfile.NamedTemporaryFile() as f:
            a, b = open(f.name), open(f.name)
            fcntl.flock(a, fcntl.LOCK_EX)
            fcntl.flock(b, fcntl.LOCK_EX)  # HERE""",
    "a fifo that nobody writes": """
        import os, tempfile
        with tempfile.TemporaryDirectory() as d:
            os.mkfifo(d + "/f")
            open(d + "/f")  # HERE""",
}
PROCESSES = {
    "a child": """
        import subprocess, sys
        subprocess.call([sys.executable, "-c", "import threading; threading.Event().wait()"])  # HERE""",
    "a child whose output nobody reads": """
        import subprocess, sys
        p = subprocess.Popen([sys.executable, "-c", "print('x' * (1 << 20))"], stdout=subprocess.PIPE)
        p.wait()  # HERE""",
    "a child that is communicated with": """
        import subprocess, sys
        p = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.communicate()  # HERE""",
    "a lock that was held at a fork": """
        import os
        from threading import *
        l, g = Lock(), Event()
        def f():
            with l:
                g.set()
                Event().wait()
        Thread(target=f, daemon=True).start()
        g.wait()
        pid = os.fork()
        if not pid:
            with l:  # HERE
                pass
        os.waitpid(pid, 0)""",
    "Process.join": """
        import multiprocessing, threading
        def f():
            threading.Event().wait()  # HERE
        p = multiprocessing.get_context("fork").Process(target=f)
        p.start()
        p.join()""",
    "multiprocessing.Queue": "import multiprocessing as m\nm.Queue().get()  # HERE",
    "multiprocessing.Lock": "import multiprocessing as m\nl = m.Lock()\nl.acquire()\nl.acquire()  # HERE",
    "multiprocessing.Pipe": "import multiprocessing as m\na, b = m.Pipe()\na.recv()  # HERE",
    "multiprocessing.Event": "import multiprocessing as m\nm.Event().wait()  # HERE",
    "a worker of a pool": """
        import multiprocessing, threading
        def f():
            threading.Event().wait()  # HERE
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.apply(f)""",
    "a worker of ProcessPoolExecutor": """
        import concurrent.futures as c, multiprocessing, threading
        def f():
            threading.Event().wait()  # HERE
        with c.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            pool.submit(f).result()""",
    "it has stopped itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)  # HERE",
}
ASYNC = {
    "asyncio.Event": "import asyncio\nasync def f():\n    await asyncio.Event().wait()  # HERE\nasyncio.run(f())",
    "asyncio.Queue": "import asyncio\nasync def f():\n    await asyncio.Queue().get()  # HERE\nasyncio.run(f())",
    "asyncio.Lock": """
        import asyncio
        async def f():
            l = asyncio.Lock()
            async with l:
                async with l:  # HERE
                    pass
        asyncio.run(f())""",
    "asyncio.gather": """
        import asyncio
        async def g(e):
            await e.wait()  # HERE
        async def f():
            await asyncio.gather(*(g(asyncio.Event()) for _ in range(3)))
        asyncio.run(f())""",
    "a thread of asyncio": """
        import asyncio, threading
        def g():
            threading.Event().wait()  # HERE
        async def f():
            await asyncio.get_running_loop().run_in_executor(None, g)
        asyncio.run(f())""",
    "a call that blocks the loop": """
        import asyncio, threading
        async def f():
            threading.Event().wait()  # HERE
        asyncio.run(f())""",
}
TIMED = {
    "a loop": "x = 0\nwhile True: x += 1  # HERE",
    "a loop of a generator": "def g():\n    while True:\n        yield\nfor _ in g(): pass  # HERE",
    "a regular expression": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')  # HERE",
    "a loop that polls": "import time\nwhile True:\n    time.sleep(0.01)  # HERE",
    "a queue that is polled": """
        import queue
        q = queue.Queue()
        while True:
            try:
                q.get(timeout=0.01)  # HERE
            except queue.Empty:
                pass""",
    "a long sleep": "import time\ntime.sleep(1000)  # HERE",
    "a lock with a limit": "from threading import *\nl = Lock()\nl.acquire()\nl.acquire(timeout=1000)  # HERE",
    "a signal that nobody sends": "import signal\nsignal.pause()  # HERE",
    "a server": "import socket\nsocket.create_server(('127.0.0.1', 0)).accept()  # HERE",
}
KINDS = {name: (source, HANG) for part in (LOCKS, QUEUES, FILES, PROCESSES, ASYNC) for name, source in part.items()}
KINDS.update((name, (source, TIME)) for name, source in TIMED.items())

# Programs that only wait, for something that may come.
IDLE = {
    "a server": "import socket\nsocket.create_server(('127.0.0.1', 0)).accept()",
    "a server with an idle client": """
        import selectors, socket
        s = socket.create_server(("127.0.0.1", 0))
        c = socket.create_connection(s.getsockname())
        d, _ = s.accept()
        e = selectors.DefaultSelector()
        e.register(s, selectors.EVENT_READ)
        e.register(d, selectors.EVENT_READ)
        e.select()""",
    "a server in a thread": """
        import socketserver, threading
        s = socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        threading.Thread(target=s.serve_forever, args=(1000,), daemon=True).start()
        threading.Event().wait()""",
    "http.server": "import http.server as h\nh.HTTPServer(('127.0.0.1', 0), h.BaseHTTPRequestHandler).serve_forever(1000)",
    "a server of asyncio": """
        import asyncio
        async def f():
            s = await asyncio.start_server(print, "127.0.0.1", 0)
            await s.serve_forever()
        asyncio.run(f())""",
    "a unix socket": """
        import socket, tempfile
        s = socket.socket(socket.AF_UNIX)
        s.bind(tempfile.mkdtemp() + "/s")
        s.listen()
        s.accept()""",
    "a UDP socket": "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 0))\ns.recv(1)",
    "a server with workers": """
        import os, socket
        s = socket.create_server(("127.0.0.1", 0))
        for _ in range(2):
            if not os.fork():
                s.accept()
        os.wait()""",
    "input": "import sys\nsys.stdin.readline()",
    "input of a child": "import subprocess, sys\nsubprocess.call([sys.executable, '-c', 'input()'])",
    "a loop with a sleep": "import time\nwhile True:\n    time.sleep(0.05)",
    "a loop with a long sleep": "import time\nwhile True:\n    time.sleep(1000)",
    "a timer": "import threading\nt = threading.Timer(1000, print)\nt.start()\nt.join()",
    "a scheduler": "import sched\ns = sched.scheduler()\ns.enter(1000, 1, print)\ns.run()",
    "a sleep of asyncio": "import asyncio\nasyncio.run(asyncio.sleep(1000))",
    "a signal": "import signal\nsignal.pause()",
    "a signal of a set": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [15])\nsignal.sigwait([15])",
    "a sleeping child": "import subprocess\nsubprocess.call(['sleep', '1000'])",
    "a child behind a thread": """
        import subprocess, threading
        p = subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE)
        t = threading.Thread(target=p.stdout.read)
        t.start()
        t.join()""",
    "workers that wait for tasks": """
        import queue, socket, threading
        q = queue.Queue()
        for _ in range(3):
            threading.Thread(target=q.get, daemon=True).start()
        socket.create_server(("127.0.0.1", 0)).accept()""",
}

# Programs that wait for others than themselves: outsiders() makes them.
FOR_OTHERS = {
    "a server that is quiet": """
        import socket
        socket.create_connection(("127.0.0.1", PORT)).recv(1)""",
    "a server that is quiet, of asyncio": """
        import asyncio
        async def f():
            reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
            await reader.readline()
        asyncio.run(f())""",
    "a worker with a server": """
        import multiprocessing, socket
        def f():
            socket.create_connection(("127.0.0.1", PORT)).recv(1)
        p = multiprocessing.get_context("fork").Process(target=f)
        p.start()
        p.join()""",
    "a fifo for commands": """
        import os, tempfile
        name = tempfile.mkdtemp() + "/f"
        os.mkfifo(name)
        os.read(os.open(name, os.O_RDWR), 1)""",
    "a supervisor with a fifo": """
        import os, select, tempfile
        name = tempfile.mkdtemp() + "/f"
        os.mkfifo(name)
        r, w = os.pipe()
        if not os.fork():
            os.close(w)
            os.read(r, 1)
        select.select([os.open(name, os.O_RDWR | os.O_NONBLOCK)], [], [])""",
    "a socket for messages": """
        import socket, tempfile
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.bind(tempfile.mkdtemp() + "/s")
        s.recv(1)""",
    "a message queue": """
        import ctypes
        c = ctypes.CDLL(None)
        c.msgrcv(QUEUE, ctypes.create_string_buffer(100), ctypes.c_size_t(50), ctypes.c_long(0), 0)""",
    "a POSIX message queue": """
        import ctypes, os
        c = ctypes.CDLL("librt.so.1")
        name = b"/probing-test-%d" % os.getpid()
        queue = c.mq_open(name, os.O_RDWR | os.O_CREAT, 0o600, None)
        c.mq_unlink(name)
        c.mq_receive(queue, ctypes.create_string_buffer(10000), ctypes.c_size_t(8192), None)""",
    "a terminal of its own": "import os, pty\nmaster, slave = pty.openpty()\nos.read(master, 1)",
}


@contextlib.contextmanager
def outsiders(source):
    """The source of one of those, while somebody else has what it waits for."""
    libc = ctypes.CDLL(None)
    with contextlib.ExitStack() as stack:
        if "PORT" in source:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            source = source.replace("PORT", str(server.getsockname()[1]))
            # A connection that is not accepted has no owner.
            accepter = threading.Thread(target=lambda: stack.enter_context(server.accept()[0]), daemon=True)
            accepter.start()
        if "QUEUE" in source:
            queue = libc.msgget(0, 0o600)
            stack.callback(libc.msgctl, queue, 0, None)
            source = source.replace("QUEUE", str(queue))
        yield source


def write(folder, source):
    """The program in the folder, and the number of the marked line."""
    path = folder / "hung.py"
    text = textwrap.dedent(source).strip() + "\n"
    path.write_text(text, encoding="utf-8")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if MARK in line]
    return path, lines[0] if lines else None


class Background:
    """A command of ours in the background."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def __enter__(self):
        return self

    def line(self):
        assert select.select([self.process.stdout], [], [], 60)[0]
        return self.process.stdout.readline().decode()

    def end(self):
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out.decode(), err.decode()

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def environment():
    """Without what would make the command behave otherwise."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PROBING_")}
    return dict(kept, NO_COLOR="1", PYTHONDONTWRITEBYTECODE="1")
