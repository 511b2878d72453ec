# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank of a job on gloo: does what each line of its stdin says, and prints when it is done.

The ranks of a launcher have $RANK_FIFOS instead, a folder with two fifos for each."""
import ctypes
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
tensor = torch.ones(4)


class Slow(Dataset):
    """Its only item comes when the file exists."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        with open(sys.argv[1] + ".worker", "w", encoding="ascii") as file:
            file.write("%d\n" % os.getpid())
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.05)
        return index


def gather():
    dist.all_reduce(tensor)


def spread():
    dist.broadcast(tensor, 0)


def receive():
    dist.recv(tensor, (dist.get_rank() + 1) % dist.get_world_size())


def load():
    for _ in DataLoader(Slow(), num_workers=1):
        pass
    dist.all_reduce(tensor)


def loop():
    """Computes and meets the others again and again, until one of them has seen the file."""
    stop = torch.zeros(1)
    while not stop:
        sum(range(20000))
        stop[0] = float(os.path.exists(sys.argv[1]))
        dist.all_reduce(stop)


def read_file():
    time.sleep(0.05)


def uneven():
    """As loop(), but rank 1 reads a slow file in each step."""
    stop = torch.zeros(1)
    while not stop:
        if dist.get_rank() == 1:
            read_file()
        stop[0] = float(os.path.exists(sys.argv[1]))
        dist.all_reduce(stop)


def lock():
    """The main thread and a worker wait for each other for ever."""
    first, second = threading.RLock(), threading.RLock()
    both = threading.Barrier(2)

    def take(one, other):
        with one:
            both.wait()
            with other:
                pass

    threading.Thread(target=take, args=(second, first), daemon=True).start()
    take(first, second)


def stall():
    """Waits until the file exists."""
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.05)


def fifo():
    path = "%s.fifo%d" % (sys.argv[1], dist.get_rank())
    os.mkfifo(path)
    return path


def hold_gil():
    """In C, without giving the GIL away."""
    fd = os.open(fifo(), os.O_RDWR)
    ctypes.PyDLL(None).read(fd, ctypes.create_string_buffer(1), 1)
    os.close(fd)
    dist.all_reduce(tensor)


def lose_gil():
    """Another thread holds the GIL."""
    fd = os.open(fifo(), os.O_RDWR)
    read, buffer = ctypes.PyDLL(None).read, ctypes.create_string_buffer(1)
    held = threading.Thread(target=read, args=(fd, buffer, 1))
    held.start()
    held.join()
    os.close(fd)
    dist.all_reduce(tensor)


def save():
    """A checkpoint to a destination that nobody reads."""
    torch.save({"weight": tensor}, fifo())
    dist.barrier()


def save_far():
    """A checkpoint on a file system that may hang."""
    try:
        with open(sys.argv[1] + ".mount/checkpoint", "wb") as file:
            torch.save({"weight": tensor}, file)
    except OSError:
        pass
    dist.barrier()


def meet():
    dist.barrier()


def pipeline():
    """Each stage has its input from the one before; stage 1 stalls."""
    rank = dist.get_rank()
    if rank:
        if rank == 1:
            stall()
        dist.recv(tensor, rank - 1)
    if rank < dist.get_world_size() - 1:
        dist.send(tensor, rank + 1)


def sharded():
    """Each layer gathers its weights from all ranks; rank 2 stalls in the second one."""
    for layer in range(3):
        parts = [torch.empty(4) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, tensor)
        if layer == 1 and dist.get_rank() == min(2, dist.get_world_size() - 1):
            stall()
        dist.all_reduce(torch.cat(parts))


def parallel():
    """Gradients are exchanged by C++ code in the backward pass; rank 0 stalls in its forward pass."""
    model = torch.nn.Linear(4, 4)
    if dist.get_rank() == 0:
        model.register_forward_pre_hook(lambda *_: stall())
    shared = DistributedDataParallel(model)
    shared(tensor).sum().backward()


def later():
    """The program waits by itself; rank 1 stalls before it begins."""
    if dist.get_rank() == 1:
        stall()
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()


def grouped():
    """Only ranks 0 and 1 are in the group; rank 1 stalls."""
    if dist.get_rank() == 1:
        stall()
    dist.all_reduce(tensor, group=pairs[0])


def crossed():
    """Each rank begins with a different group."""
    dist.all_reduce(tensor, group=pairs[dist.get_rank()])


def twins():
    """Two groups of the same ranks; rank 2 begins with the other one."""
    groups = [dist.new_group() for _ in range(2)]
    for group in groups if dist.get_rank() != 2 else reversed(groups):
        dist.barrier(group)


def device():
    """A library with functions of CUDA's names; rank 1 has not come there yet."""
    if dist.get_rank() == 1:
        stall()
    ctypes.CDLL(os.environ["FAKE_CUDA"]).cudaStreamSynchronize(sys.argv[1].encode())


def shapes():
    dist.all_reduce(torch.ones(4 if dist.get_rank() else 1000000))


def roots():
    dist.broadcast(tensor, 1 if dist.get_rank() == 1 else 0)


def forgotten():
    """Rank 2, or the last one, leaves out a call."""
    if dist.get_rank() != min(2, dist.get_world_size() - 1):
        dist.all_reduce(tensor)
    dist.all_reduce(tensor)
    dist.all_reduce(tensor)


def around():
    """All receive first, in a circle."""
    dist.recv(tensor, (dist.get_rank() + 1) % dist.get_world_size())


def killed():
    """The worker of a data loader dies."""
    for _ in DataLoader(Slow(), num_workers=1):
        pass


def leave():
    sys.exit(0)


def read_all(path):
    with open(path, "rb") as file:
        file.read()


def upload():
    """The training is over, and a thread still has something to do."""
    threading.Thread(target=read_all, args=(fifo(),), name="uploader").start()
    sys.exit(0)


def batch():
    """Rank 0 has sent everything, and ends; rank 1 waits in C++ for rank 2, which stalls."""
    if dist.get_rank() == 0:
        for other in (1, 2):
            dist.send(tensor, other)
        sys.exit(0)
    if dist.get_rank() == 2:
        dist.recv(tensor, 0)
        stall()
        return
    works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, torch.ones(4), other) for other in (0, 2)])
    for work in works:
        work.wait()


def take_place():
    """MPI's and Slurm's numbers of a rank are not torch's."""
    for name, others in (("RANK", ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID")),
                         ("WORLD_SIZE", ("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"))):
        for other in others:
            if other in os.environ:
                os.environ.setdefault(name, os.environ[other])
    folder = os.environ.get("RANK_FIFOS")
    if folder:
        sys.stdin = open("%s/in%s" % (folder, os.environ["RANK"]), encoding="ascii")
        os.dup2(os.open("%s/out%s" % (folder, os.environ["RANK"]), os.O_WRONLY), 1)
        print(os.getpid(), flush=True)


if __name__ == "__main__":
    take_place()
    dist.init_process_group("gloo")
    # Of ranks 0 and 1, 1 and 2, 2 and 0.
    pairs = [dist.new_group(sorted((first, (first + 1) % 3))) for first in range(3)] \
        if dist.get_world_size() == 3 else []
    print("ready", flush=True)
    for line in sys.stdin:
        globals()[line.strip()]()
        print("done", flush=True)
