# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank of a job on gloo that hangs: `rank_kinds.py CASE FILE`. It makes FILE.RANK just before it does so. In
most cases rank 2 of 4 stays away from the barrier of the others."""
import concurrent.futures
import fcntl
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

CASE, FILE = sys.argv[1:]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LATE = 2
TENSOR = torch.ones(4)


def there():
    with open("%s.%d" % (FILE, RANK), "w", encoding="ascii"):
        pass


def stuck(*_):
    """Where the culprit is found in the end."""
    a, b = socket.socketpair()
    a.recv(1)
    b.close()


def barrier():
    there()
    dist.barrier()


def late(function):
    """Rank 2 does this, the others meet."""
    if RANK == LATE:
        there()
        function()
    barrier()


def join_thread():
    thread = threading.Thread(target=stuck, name="uploader")
    thread.start()
    thread.join()


def queue_get():
    threading.Thread(target=stuck, name="reader", daemon=True).start()
    queue.Queue().get()


def event_of_nobody():
    """No lock says which thread will set the event."""
    threading.Thread(target=stuck, name="bystander", daemon=True).start()
    threading.Event().wait()


def future_result():
    concurrent.futures.ThreadPoolExecutor(1, "saver").submit(stuck).result()


def plain_lock():
    lock = threading.Lock()
    taken = threading.Event()

    def keep():
        with lock:
            taken.set()
            stuck()

    threading.Thread(target=keep, name="keeper", daemon=True).start()
    taken.wait()
    with lock:
        pass


def child_python():
    subprocess.run([sys.executable, "-c", "import socket; a, b = socket.socketpair(); a.recv(1)"], check=False)


def child_pipe():
    subprocess.run("sleep 600", shell=True, stdout=subprocess.PIPE, check=False)


def thread_child():
    thread = threading.Thread(target=child_python, name="converter")
    thread.start()
    thread.join()


def pool_stuck():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(stuck)


def executor_self():
    executor = concurrent.futures.ThreadPoolExecutor(1, "loop")
    executor.submit(lambda: executor.submit(int).result()).result()


def lock_file(shared):
    file = open(FILE + ".lock", "w", encoding="ascii")
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    return file


def file_lock_rank0():
    """Rank 0 holds a lock at the barrier that the others want before it."""
    if RANK == 0:
        file = lock_file(False)
        dist.all_reduce(TENSOR)
        barrier()
        file.close()
    dist.all_reduce(TENSOR)
    there()
    lock_file(False)
    dist.barrier()


def collective_in_thread():
    """The main thread waits for a thread that meets the others; rank 2 has not come."""
    group = dist.new_group(list(range(SIZE)))

    def save():
        there()
        dist.barrier(group)

    if RANK == LATE:
        there()
        stuck()
    thread = threading.Thread(target=save, name="checkpoint")
    thread.start()
    thread.join()


def other_tag():
    if RANK == 0:
        there()
        dist.recv(TENSOR, src=1, tag=7)
    if RANK == 1:
        there()
        dist.send(torch.ones(1 << 22), dst=0, tag=8)
    barrier()


def wrong_source():
    """Rank 0 receives from rank 2, while rank 1 sends to it."""
    if RANK == 0:
        there()
        dist.recv(torch.ones(1 << 22), src=2)
    if RANK == 1:
        there()
        dist.send(torch.ones(1 << 22), dst=0)
    barrier()


def groups_order():
    one, two = dist.new_group(list(range(SIZE))), dist.new_group(list(range(SIZE)))
    there()
    for group in (one, two) if RANK < 2 else (two, one):
        dist.barrier(group)


def group_of_some():
    """Only two ranks call new_group(): all must."""
    there()
    if RANK < 2:
        dist.new_group([0, 1])
    dist.barrier()


def exit_thread():
    """Training is over, but a thread of rank 2 is not."""
    dist.barrier()
    if RANK == LATE:
        threading.Thread(target=stuck, name="uploader").start()
    there()


def exit_one():
    """Rank 0 has finished, rank 2 stalls before what ranks 1 and 3 wait for."""
    pair = dist.new_group([1, 2, 3])
    dist.barrier()
    there()
    if RANK == 0:
        os._exit(0)
    if RANK == LATE:
        stuck()
    dist.barrier(pair)


def stopped():
    if RANK == LATE:
        there()
        os.kill(os.getpid(), signal.SIGSTOP)
    barrier()


def gil_hog():
    """All move; another thread of rank 2 computes."""
    if RANK == LATE:
        threading.Thread(target=spin, daemon=True).start()
    there()
    while True:
        dist.all_reduce(TENSOR)
        sum(range(20000))


def spin():
    while True:
        pass


def counted():
    """All move, always from the same line."""
    there()
    for step in range(1 << 60):
        dist.all_reduce(TENSOR)
        del step


def poll_file():
    there()
    while not os.path.exists(FILE + ".never"):
        time.sleep(0.05)


def retry():
    there()
    while True:
        try:
            socket.create_connection(("127.0.0.1", 1), timeout=1)
        except OSError:
            time.sleep(0.02)


AWAY = (join_thread, queue_get, event_of_nobody, future_result, plain_lock, child_python, child_pipe, thread_child,
        pool_stuck, executor_self, stuck, poll_file, retry)


def main(kinds, away):
    """Rank 2 does what is in @away; of all else it is a part."""
    dist.init_process_group("gloo")
    dist.barrier()
    if kinds[CASE] in away:
        late(kinds[CASE])
    else:
        kinds[CASE]()


if __name__ == "__main__":
    main(globals(), AWAY)
