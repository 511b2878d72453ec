# SPDX-License-Identifier: GPL-3.0-or-later
"""Data loaders of torch: batches asked for and received, how full the queues are, and what each worker does."""

import array
import fcntl
import os
import stat
import termios

import probing

p = probing.current()
MODULE = "torch.utils.data.dataloader."


def doing(pid):
    try:
        with probing.attach(pid) as worker:
            frames = worker.threads()[0].frames
            return "in %s %s:%s" % (frames[0].func, frames[0].file, frames[0].line)
    except (probing.Error, IndexError) as error:
        return "cannot be read: %s" % error


def unread(queue):
    """Bytes in the pipe of a queue of multiprocessing, -1 if it cannot be told. Nothing is read of it."""
    found, opened = array.array("i", [-1]), []
    try:
        opened.append(os.open("/proc/%d/fd/%d" % (p.pid, int(queue._reader._handle)), os.O_PATH))
        # The program's user chooses what its descriptors are: only a pipe is opened.
        if stat.S_ISFIFO(os.fstat(opened[0]).st_mode):
            opened.append(os.open("/proc/self/fd/%d" % opened[0], os.O_RDONLY | os.O_NONBLOCK))
            fcntl.ioctl(opened[1], termios.FIONREAD, found)
    except (probing.Error, OSError, TypeError, ValueError):
        pass
    for fd in opened:
        os.close(fd)
    return found[0]


def results(loader):
    size = unread(loader._worker_result_queue)
    text = "results of workers: %s" % ("not known" if size < 0 else "%d bytes wait" % size if size else "none wait")
    try:
        return text + "; %d pinned batches wait" % len(loader._data_queue.queue)
    except (probing.Error, TypeError):
        return text


count = 0
for loader in p.find(MODULE + "_MultiProcessingDataLoaderIter"):
    count += 1
    print("loader of %s: %d batches asked for, %d received, %d not yet taken%s" % (
        loader._dataset.type.name, loader._send_idx, loader._rcvd_idx,
        loader._tasks_outstanding, ", shut down" if loader._shutdown else ""))
    print("  " + results(loader))
    for number, worker in enumerate(loader._workers):
        pid, more = int(worker._popen.pid), unread(loader._index_queues[number])
        print("  worker %d, pid %d %s%s" % (number, pid, doing(pid), ", more work waits" if more > 0 else
                                            ", no more work waits" if not more else ""))
for loader in p.find(MODULE + "_SingleProcessDataLoaderIter"):
    count += 1
    print("loader of %s: no workers, %d batches loaded in the program itself" % (
        loader._dataset.type.name, loader._num_yielded))
if not count:
    print("There is no iterator of a torch DataLoader.")
