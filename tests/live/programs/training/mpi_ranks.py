# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank of an MPI job without torch: `mpi_ranks.py CASE FILE`. FILE is made for each rank that is where it stays;
its last number is the rank. MPI spins: a rank that waits computes all the time."""
import sys
import time

from mpi4py import MPI

CASE, FILE = sys.argv[1:]
WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
DATA, SUM = bytearray(8), bytearray(8)


def there():
    with open("%s.%d" % (FILE, RANK), "w", encoding="ascii"):
        pass


def stall():
    there()
    time.sleep(600)


def compute():
    there()
    total = 0
    while True:
        for number in range(1000):
            total += number * number


def reduce(comm=WORLD):
    comm.Allreduce([DATA, MPI.BYTE], [SUM, MPI.BYTE], op=MPI.BOR)


def case_sleep():
    reduce()
    if RANK == 2:
        stall()
    there()
    reduce()


def case_busy():
    reduce()
    if RANK == 2:
        compute()
    there()
    reduce()


def case_mismatch():
    reduce()
    there()
    if RANK == 2:
        WORLD.Barrier()
    reduce()


def case_lower():
    WORLD.allreduce(RANK)
    if RANK == 2:
        stall()
    there()
    WORLD.allreduce(RANK)


def case_gather():
    """The root waits for a pickled object of rank 2."""
    WORLD.Barrier()
    if RANK == 2:
        stall()
    there()
    WORLD.gather({"rank": RANK})
    WORLD.Barrier()


def case_tag():
    reduce()
    there()
    if RANK == 0:
        WORLD.recv(source=1, tag=7)
    if RANK == 1:
        WORLD.Ssend([DATA, MPI.BYTE], dest=0, tag=8)
    WORLD.Barrier()


def case_split():
    half = WORLD.Split(RANK % 2)
    reduce(half)
    if RANK == 2:
        stall()
    there()
    reduce(half)
    WORLD.Barrier()


def case_failed():
    """Rank 2 has failed, and waits at its end for the others, who meet once more."""
    WORLD.Barrier()
    there()
    if RANK == 2:
        raise SystemExit("failed")
    WORLD.Barrier()


def case_request():
    """Rank 0 has begun to receive what rank 2 never sends."""
    WORLD.Barrier()
    if RANK == 0:
        request = WORLD.Irecv([DATA, MPI.BYTE], source=2)
        there()
        request.Wait()
    if RANK == 2:
        stall()
    there()
    WORLD.Barrier()


def case_probe():
    WORLD.Barrier()
    if RANK == 0:
        there()
        WORLD.Probe(source=2)
    if RANK == 2:
        stall()
    there()
    WORLD.Barrier()


def case_divide():
    """Rank 2 does not take part in making a communicator."""
    WORLD.Barrier()
    if RANK == 2:
        stall()
    there()
    WORLD.Split(RANK % 2)


def case_poll():
    """Rank 2 stays away from a barrier that the others ask for now and then."""
    WORLD.Barrier()
    if RANK == 2:
        stall()
    request = WORLD.Ibarrier()
    there()
    while not request.Test():
        time.sleep(0.01)


def case_moving():
    there()
    while True:
        total = 0
        for number in range(20000):
            total += number
        reduce()


def case_tight():
    """Always at one place, and no variable tells that it moves."""
    there()
    while True:
        reduce()


globals()["case_" + CASE]()
