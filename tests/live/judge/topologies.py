# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of 2 to 16 processes that wait for each other, and in the end for one in root_cause().

Run as a program with a folder and the name of a topology, this is one of them. The process in root_cause()
writes its pid to the file "root" there, and the one to ask about, if it is not the first, to "waiter"."""
import asyncio
import ctypes
import ctypes.util
import concurrent.futures
import fcntl
import http.server
import multiprocessing
import multiprocessing.managers
import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request

TOPOLOGIES = {}


def topology(function):
    TOPOLOGIES[function.__name__] = function
    return function


def note(name):
    path = os.path.join(sys.argv[1], name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    os.rename(path + ".new", path)


def until(name):
    while not os.path.exists(os.path.join(sys.argv[1], name)):
        time.sleep(0.01)


def root_cause(*_):
    note("root")
    time.sleep(100000)


def child(function, *arguments, close=()):
    pid = os.fork()
    if pid:
        return pid
    for fd in close:
        os.close(fd)
    function(*arguments)
    os._exit(0)


def words(*more):
    return [sys.executable, __file__, sys.argv[1]] + list(more)


def linked(count):
    """Each process reads from a pipe that only the next one can write to; the last one is the root."""
    if not count:
        root_cause()
    reader, writer = os.pipe()
    child(linked, count - 1, close=[reader])
    os.close(writer)
    os.read(reader, 1)


@topology
def pipe():
    linked(1)


@topology
def pipes_of_4():
    linked(3)


@topology
def pipes_of_16():
    linked(15)


@topology
def subprocesses():
    subprocess.call(words("middle"))


@topology
def middle():
    subprocess.check_output(words("last"))


@topology
def last():
    root_cause()


@topology
def shell():
    subprocess.call(["sh", "-c", '"$@"; true', "sh"] + words("last"))


@topology
def any_child():
    child(root_cause)
    os.wait()


@topology
def socketpair():
    ours, theirs = socket.socketpair()
    child(root_cause, close=[ours.fileno()])
    theirs.close()
    ours.recv(1)


def serve(listener, following):
    """Answers a request after it has the answer of the next one."""
    connection = listener.accept()[0]
    connection.recv(1)
    if not following:
        root_cause()
    ask(following)


def ask(address):
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as connection:
        connection.connect(address)
        connection.sendall(b"x")
        connection.recv(1)


def servers(family, count):
    listeners = []
    for number in range(count):
        listener = socket.socket(family)
        listener.bind(os.path.join(sys.argv[1], "s%d" % number) if family == socket.AF_UNIX else ("127.0.0.1", 0))
        listener.listen(5)
        listeners.append(listener)
    addresses = [listener.getsockname() for listener in listeners] + [None]
    for number, listener in enumerate(listeners):
        child(serve, listener, addresses[number + 1],
              close=[other.fileno() for other in listeners if other is not listener])
    for listener in listeners:
        listener.close()
    ask(addresses[0])


@topology
def tcp():
    servers(socket.AF_INET, 1)


@topology
def tcp_of_5():
    servers(socket.AF_INET, 4)


@topology
def unix_of_4():
    servers(socket.AF_UNIX, 3)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        root_cause()


class ThreadingServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    pass


@topology
def http_with_threads():
    server = ThreadingServer(("127.0.0.1", 0), Handler)
    child(server.serve_forever)
    address = "http://127.0.0.1:%d/" % server.server_address[1]
    server.socket.close()
    urllib.request.urlopen(address)


@topology
def join():
    process = FORK.Process(target=root_cause)
    process.start()
    process.join()


@topology
def connections():
    ours, theirs = FORK.Pipe()
    FORK.Process(target=relay, args=(theirs, ours)).start()
    theirs.close()
    ours.recv()


def relay(connection, other):
    other.close()
    ours, theirs = FORK.Pipe()
    FORK.Process(target=hold_connection, args=(theirs, ours, connection)).start()
    theirs.close()
    ours.recv()


def hold_connection(_connection, *others):
    for other in others:
        other.close()
    root_cause()


@topology
def queue_producer():
    queue = FORK.Queue()
    FORK.Process(target=root_cause, args=(queue,)).start()
    queue.get()


def consume(queue, name=None):
    if name:
        note(name)
    queue.get()


@topology
def queue_consumers():
    queue = FORK.Queue()
    for number in range(4):
        FORK.Process(target=consume, args=(queue, "waiter" if number == 3 else None)).start()
    until("waiter")
    root_cause()


@topology
def simple_queue_consumers():
    queue = FORK.SimpleQueue()
    for number in range(7):
        FORK.Process(target=consume, args=(queue, "waiter" if number == 3 else None)).start()
    until("waiter")
    root_cause()


@topology
def joinable_queue():
    queue = FORK.JoinableQueue()
    queue.put(1)
    FORK.Process(target=work, args=(queue,)).start()
    queue.join()


def work(queue):
    queue.get()
    root_cause()


def inside(lock, more=None):
    with lock:
        if not more:
            root_cause()
        until("root")
        with more:
            pass


@topology
def process_lock():
    lock = FORK.Lock()
    FORK.Process(target=inside, args=(lock,)).start()
    until("root")
    with lock:
        pass


@topology
def process_rlock_of_5():
    lock = FORK.RLock()
    FORK.Process(target=inside, args=(lock,)).start()
    until("root")
    for _ in range(3):
        FORK.Process(target=inside, args=(lock,)).start()
    with lock:
        pass


@topology
def process_semaphore():
    semaphore = FORK.BoundedSemaphore(1)
    FORK.Process(target=inside, args=(semaphore,)).start()
    until("root")
    with semaphore:
        pass


@topology
def process_locks_of_3():
    first, second = FORK.Lock(), FORK.Lock()
    FORK.Process(target=inside, args=(second,)).start()
    until("root")
    process = FORK.Process(target=inside, args=(first, second))
    process.start()
    while not first.acquire(False):
        break
    else:
        first.release()
        time.sleep(0.5)
    with first:
        pass


@topology
def process_condition():
    condition = FORK.Condition()
    FORK.Process(target=root_cause, args=(condition,)).start()
    with condition:
        condition.wait()


@topology
def process_event():
    event = FORK.Event()
    FORK.Process(target=root_cause, args=(event,)).start()
    event.wait()


@topology
def process_barrier():
    barrier = FORK.Barrier(2)
    FORK.Process(target=root_cause, args=(barrier,)).start()
    barrier.wait()


@topology
def pool_map():
    with FORK.Pool(4) as pool:
        pool.map(root_cause, [1])


@topology
def pool_result():
    with FORK.Pool(3) as pool:
        pool.apply_async(subprocess.call, (words("middle"),)).get()


@topology
def process_executor():
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        executor.submit(root_cause).result()


@topology
def thread_executor():
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        executor.submit(subprocess.call, words("last")).result()


class Service:
    def work(self):
        root_cause()


class Services(multiprocessing.managers.BaseManager):
    pass


Services.register("Service", Service)


@topology
def manager():
    with Services(ctx=FORK) as services:
        services.Service().work()


def use(service):
    note("waiter")
    service.work()


@topology
def manager_of_3():
    with Services(ctx=FORK) as services:
        service = services.Service()
        process = FORK.Process(target=use, args=(service,))
        process.start()
        process.join()


def locked(path, lock, more=None):
    with open(path, "a", encoding="utf-8") as file:
        lock(file, fcntl.LOCK_EX)
        if not more:
            root_cause()
        note("holds")
        with open(more, "a", encoding="utf-8") as other:
            lock(other, fcntl.LOCK_EX)


def file_lock(lock, *names):
    paths = [os.path.join(sys.argv[1], name) for name in names]
    child(locked, paths[-1], lock)
    until("root")
    if len(paths) > 1:
        child(locked, paths[0], lock, paths[1])
        until("holds")
    with open(paths[0], "a", encoding="utf-8") as file:
        lock(file, fcntl.LOCK_EX)


@topology
def flock():
    file_lock(fcntl.flock, "one")


@topology
def flock_of_3():
    file_lock(fcntl.flock, "one", "two")


@topology
def record_lock_of_3():
    file_lock(fcntl.lockf, "one", "two")


@topology
def thread_and_child():
    thread = threading.Thread(target=pipe)
    thread.start()
    thread.join()


@topology
def lock_and_child():
    lock = threading.RLock()

    def hold():
        with lock:
            pipe()
    threading.Thread(target=hold).start()
    until("root")
    with lock:
        pass


async def await_child():
    process = await asyncio.create_subprocess_exec(*words("last"))
    await process.wait()


@topology
def asyncio_child():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(await_child())


def zmq_socket(kind):
    zmq = ctypes.CDLL(ZMQ)
    for function in zmq.zmq_ctx_new, zmq.zmq_socket:
        function.restype = ctypes.c_void_p
    made = ctypes.c_void_p(zmq.zmq_socket(ctypes.c_void_p(zmq.zmq_ctx_new()), kind))
    return zmq, made


def zmq_serve(address, *following):
    zmq, server = zmq_socket(REP)
    assert not zmq.zmq_bind(server, address.encode())
    assert zmq.zmq_recv(server, ctypes.create_string_buffer(9), 9, 0) == 1
    if not following:
        root_cause()
    zmq_ask(*following)


def zmq_ask(address):
    zmq, client = zmq_socket(REQ)
    assert not zmq.zmq_connect(client, address.encode())
    assert zmq.zmq_send(client, b"x", 1, 0) == 1
    zmq.zmq_recv(client, ctypes.create_string_buffer(9), 9, 0)


def zmq_chain(*addresses):
    for number in range(len(addresses)):
        child(zmq_serve, *addresses[number:number + 2])
    zmq_ask(addresses[0])


@topology
def zeromq_ipc():
    zmq_chain("ipc://%s/zmq" % sys.argv[1])


@topology
def zeromq_tcp():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    zmq_chain("tcp://127.0.0.1:%d" % port)


ZMQ = ctypes.util.find_library("zmq")
REQ, REP = 3, 4
FORK = multiprocessing.get_context("fork")

if __name__ == "__main__":
    TOPOLOGIES[sys.argv[2]]()
