# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of LMDeploy, `transformers serve`, Ray Serve or llama-cpp-python's server, in objects of their own classes: `real_others.py FOLDER`."""
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
    old = "0.10" in sys.argv[1]
    if not old:
        from lmdeploy.pytorch.paging.seq_states import states
    made = object.__new__(scheduler.Scheduler)
    made.seq_manager = object.__new__(messages.SequenceManager)
    made.seq_manager._seq_map = {}
    made.block_manager = types.SimpleNamespace(num_gpu_blocks=10, allocator=base_block_manager.LogicalAllocator(*((0, 10) if old else (0, 10, 0))))
    made.scheduler_config = Settings(max_batches=4)
    for number in range(3):
        each = object.__new__(messages.SchedulerSequence)
        each.__dict__.update(seq_id=number, arrive_time=time.time() - 50, adapter_name=None, num_new_tokens=number)
        each.__dict__.update({"_status": messages.MessageStatus.WAITING} if old else {"_state": object.__new__(states.WaitingState)})
        made.seq_manager._seq_map[number] = each
    return made


def transformers():
    install({"transformers"})
    # It refuses versions of packages that it does not use here.
    sys.modules["transformers.dependency_versions_check"] = types.SimpleNamespace(dep_version_check=lambda *_: None)
    from transformers.generation.continuous_batching import continuous_api, requests, scheduler
    made = object.__new__(continuous_api.ContinuousBatchingManager)
    made.input_queue = queue.Queue()
    inner = object.__new__(scheduler.FIFOScheduler)
    old = "4.57" in sys.argv[1]
    if old:
        scheduler.Scheduler.__init__(inner, types.SimpleNamespace(), False)
    else:
        inner.max_requests_per_batch = 4
        inner.reset()
    tokens = "full_prompt_ids" if old else "initial_tokens"
    made.batch_processor = types.SimpleNamespace(scheduler=inner)
    for number in range(3):
        inner.add_waiting_request(requests.RequestState(request_id="req_%d" % number, **{tokens: [1] * 10 * number}))
    made.input_queue.put(requests.RequestState(request_id="req_9", **{tokens: [1]}))
    return made


def ray():
    from collections import deque
    from ray.serve._private.common import RequestMetadata
    from ray.serve._private.request_router.common import PendingRequest
    from ray.serve._private.request_router.pow_2_router import PowerOfTwoChoicesRequestRouter
    made = object.__new__(PowerOfTwoChoicesRequestRouter)
    made._pending_requests_to_fulfill = deque(
        PendingRequest(args=[], kwargs={}, created_at=time.time() - 50, future=None, metadata=RequestMetadata(
            request_id="request-%d" % number, internal_request_id="internal-%d" % number)) for number in range(3))
    return made


def llama():
    """One request is at work, three wait for the lock that theirs is."""
    import asyncio
    install({"llama_cpp"})
    from llama_cpp.llama import Llama
    from llama_cpp.server import app, model
    app._llama_proxy = object.__new__(model.LlamaProxy)
    app._llama_proxy._current_model = object.__new__(Llama)
    app._llama_proxy._current_model.__dict__.update(_n_ctx=2048, n_tokens=300)

    async def request():
        async for _ in app.get_llama_proxy():
            await asyncio.Event().wait()

    async def serve():
        requests = [asyncio.ensure_future(request()) for _ in range(4)]
        await asyncio.sleep(0.1)
        print("\nready", flush=True)
        await asyncio.gather(*requests)
    asyncio.run(serve())


def loop(self):
    print("\nready", flush=True)
    while self:
        time.sleep(0.01)


loop(next(make() for make in (lmdeploy, transformers, ray, llama) if make.__name__ in sys.argv[1]))
