# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of LMDeploy, or of `transformers serve`, in objects of their own classes: `real_others.py FOLDER`."""
import queue
import sys
import time
import types

sys.path.insert(0, sys.argv[1])
from absent_packages import Settings, install  # noqa: E402


def lmdeploy():
    install({"lmdeploy"})
    from lmdeploy.pytorch import messages
    from lmdeploy.pytorch.paging import scheduler
    from lmdeploy.pytorch.paging.block_manager import base_block_manager
    from lmdeploy.pytorch.paging.seq_states import states
    made = object.__new__(scheduler.Scheduler)
    made.seq_manager = object.__new__(messages.SequenceManager)
    made.seq_manager._seq_map = {}
    made.block_manager = types.SimpleNamespace(num_gpu_blocks=10, allocator=base_block_manager.LogicalAllocator(0, 10, 0))
    made.scheduler_config = Settings(max_batches=4)
    for number in range(3):
        each = object.__new__(messages.SchedulerSequence)
        each.__dict__.update(seq_id=number, arrive_time=time.time() - 50, adapter_name=None, num_new_tokens=number,
                             _state=object.__new__(states.WaitingState))
        made.seq_manager._seq_map[number] = each
    return made


def transformers():
    install({"transformers"})
    from transformers.generation.continuous_batching import continuous_api, requests, scheduler
    made = object.__new__(continuous_api.ContinuousBatchingManager)
    made.input_queue = queue.Queue()
    inner = object.__new__(scheduler.FIFOScheduler)
    inner.max_requests_per_batch = 4
    inner.reset()
    made.batch_processor = types.SimpleNamespace(scheduler=inner)
    for number in range(3):
        inner.add_waiting_request(requests.RequestState(request_id="req_%d" % number, initial_tokens=[1] * 10 * number))
    made.input_queue.put(requests.RequestState(request_id="req_9", initial_tokens=[1]))
    return made


def loop(self):
    print("\nready", flush=True)
    while self:
        time.sleep(0.01)


loop(lmdeploy() if "lmdeploy" in sys.argv[1] else transformers())
