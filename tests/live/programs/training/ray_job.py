# SPDX-License-Identifier: GPL-3.0-or-later
"""A job of Ray: three workers train on gloo, with Ray Train or as plain actors, beside actors that do not."""
import os
import sys
import time

import ray

FILE = sys.argv[1]


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
    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", _temp_dir=sys.argv[3])
    others = [Other.remote() for _ in range(2)]
    resting = [other.rest.remote() for other in others]
    print("ready", flush=True)
    if sys.argv[2] == "train":
        from ray.train import ScalingConfig
        from ray.train.torch import TorchTrainer
        TorchTrainer(train, scaling_config=ScalingConfig(num_workers=3, use_gpu=False)).fit()
    else:
        workers = [Worker.remote() for _ in range(3)]
        ray.get([worker.run.remote(rank, 3, sys.argv[4]) for rank, worker in enumerate(workers)])
    ray.get(resting)
    print("done", flush=True)


main()
