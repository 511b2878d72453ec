# SPDX-License-Identifier: GPL-3.0-or-later
"""A job of Ray: three workers train on gloo, with Ray Train or as plain actors, beside actors that do not."""
import os
import sys
import time

import ray
import ray._private.services

FILE = sys.argv[1]
found = ray._private.services.get_node


def find(*words):
    """Ray gives its own daemon 30 s to start, which takes longer on a busy machine."""
    for _ in range(300):
        try:
            return found(*words)
        except RuntimeError:
            time.sleep(1)
    return found(*words)


def stall():
    while not os.path.exists(FILE):
        time.sleep(0.05)


def train(_config=None):
    """Rank 1 never comes to its second collective."""
    import torch
    import torch.distributed as dist
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    if dist.get_rank() == 1:
        stall()
    dist.all_reduce(tensor)


@ray.remote(num_cpus=0)
class Other:
    """No rank."""

    def rest(self):
        stall()


@ray.remote(num_cpus=0)
class Worker:
    """One rank, in the main thread of its process."""

    def run(self, rank, world, port):
        import torch.distributed as dist
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=port)
        dist.init_process_group("gloo")
        train()


def main():
    ray._private.services.get_node = find
    # The workers' output stays in their logs: only our own lines come to stdout.
    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False,
             object_store_memory=100 << 20, _temp_dir=sys.argv[3])
    others = [Other.remote() for _ in range(2)]
    resting = [other.rest.remote() for other in others]
    print("ready", flush=True)
    if sys.argv[2] == "train":
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer
        TorchTrainer(train, scaling_config=ScalingConfig(num_workers=3, use_gpu=False),
                     run_config=RunConfig(storage_path=sys.argv[3])).fit()
    else:
        workers = [Worker.remote() for _ in range(3)]
        ray.get([worker.run.remote(rank, 3, sys.argv[4]) for rank, worker in enumerate(workers)])
    ray.get(resting)
    print("done", flush=True)


main()
