# SPDX-License-Identifier: GPL-3.0-or-later
"""What `cluster hang` takes for 1,024 and 10,000 simulated ranks, 8 on each host, behind an ssh that
answers after 50 ms; without dead hosts, with 5 % dead, with 500 different stacks, and of a file. With --local, for real ranks of torch on
this machine, the last of which is late."""
import argparse
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "live"))
import simulated  # noqa: E402


def record(probing, python):
    """What one host says of two ranks, 50 frames deep."""
    ranks = [subprocess.Popen(
        [python, "-c", simulated.RANK % 48, str(rank)], stdout=subprocess.PIPE,
        env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="10.9.8.6", MASTER_PORT="1"))
        for rank in range(2)]
    for rank in ranks:
        rank.stdout.readline()
    looks = subprocess.run([probing, "cluster", "look", "10.9.8.6"], check=True, capture_output=True,
                           text=True).stdout
    for rank in ranks:
        rank.kill()
        rank.wait()
    return looks


def run(command, env):
    """Seconds, processor seconds of the command with its ssh, peak memory of it in MB."""
    begin = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begin, cpu, used.ru_maxrss / 1024


def merge(probing, hosts, folder):
    """The same answers as one bundle: what merging and judging takes alone."""
    import io
    import tarfile
    path = os.path.join(folder, "all.probing")
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        def add(name, data):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        add("probing-bundle", b"1\n")
        for number, host in enumerate(hosts):
            with open(os.path.join(folder, host), "rb") as file:
                add("looks-%d.json" % number, b'{"host": "%s", ' % host.encode() + file.read()[1:])
    return run([probing, "cluster", "hang", path], os.environ)


def local(probing, count):
    """Ranks on gloo. Prints the fastest of some runs, and the least that one used of processors."""
    os.environ["PROBING_BINARY"] = probing
    from rank_job import Job
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        job = Job(stack, os.path.join(folder, "go"), world=count)
        job.do("gather", *range(count - 1))
        job.waits(*range(count - 1))
        command = [probing, "cluster", "hang", job.name]
        runs = [run(command, os.environ) for _ in range(7)]
        print("%d ranks of this machine: %.2f s; of processors %.2f s; %.0f MB" %
              (count, *map(min, zip(*runs))))
        print(subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()[0])


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--local", type=int, help="so many ranks of this machine instead")
    args = parser.parse_args()
    args.probing = os.path.abspath(args.probing)
    if args.local:
        local(args.probing, args.local)
        return
    looks = record(args.probing, args.python)
    print("| ranks | hosts | dead | seconds | processor | memory |\n|---|---|---|---|---|---|")
    for count in (1024, 10000):
        for dead, stacks in ((0, 1), (20, 1), (0, 500), (None, 1), (None, 500)):
            with tempfile.TemporaryDirectory() as folder:
                hosts, _ = simulated.write(folder, looks, count, 8, count // 3, dead, stacks)
                env = simulated.environment(folder)
                what = merge(args.probing, hosts, folder) if dead is None else run(
                    [args.probing, "cluster", "hang", "--hosts", ",".join(hosts)], env)
            name = "of a bundle" if dead is None else "5 %" if dead else "0"
            name += ", 500 stacks" if stacks > 1 else ""
            print("| %d | %d | %s | %.1f | %.1f s | %d MB |" % (count, len(hosts), name, *what))


if __name__ == "__main__":
    main()
