# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM's own scheduler with its own requests and blocks, in its own engine core, with a stand-in for the model:
`real_vllm.py FOLDER POLICY`. Twenty blocks, and 27 requests of 60 tokens each, of which 5 can run. Prints a line when it is there.
After a line with the name of one of STATES it goes into that state, and prints a line again."""
import inspect
import queue
import sys
import threading
import time
import types
from concurrent.futures import Future

sys.path.insert(0, sys.argv[1])
from absent_packages import Settings, install  # noqa: E402

install({"vllm"})
import torch  # noqa: E402
from vllm.sampling_params import SamplingParams  # noqa: E402
from vllm.v1.core.sched import interface, scheduler  # noqa: E402
from vllm.v1.engine import core as engine_core  # noqa: E402
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec  # noqa: E402
from vllm.v1.outputs import ModelRunnerOutput  # noqa: E402
from vllm.v1.request import Request, RequestStatus  # noqa: E402


def fitting(function, **arguments):
    """Those of the arguments that this version has."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in names}


def settings(blocks):
    return Settings(
        scheduler_config=Settings(
            max_num_seqs=16, max_num_batched_tokens=2048, max_model_len=200000, policy=sys.argv[2], watermark=0.0,
            chunked_prefill_enabled=True, enable_chunked_prefill=True, long_prefill_token_threshold=0, max_num_encoder_input_tokens=0,
            encoder_cache_size=0, long_prefill_token_threshold_adaptive=0, max_num_partial_prefills=1),
        cache_config=Settings(num_gpu_blocks=blocks, block_size=16, prefix_caching_hash_algo="builtin", enable_prefix_caching=False),
        model_config=Settings(max_model_len=200000, runner_type="generate", get_diff_sampling_param=dict),
        parallel_config=Settings(pipeline_parallel_size=1, data_parallel_index=0, data_parallel_rank=0, world_size=1,
                                 decode_context_parallel_size=1, prefill_context_parallel_size=1),
        observability_config=Settings(kv_cache_metrics=False), aux_output_config=Settings(enabled=False),
        ec_manager_config=Settings(get_encoder_cache_manager_obj=lambda: types.SimpleNamespace(
            create_manager=lambda *_, **__: Settings(free=lambda *_: None, get_freed_mm_hashes=list,
                                                     get_manager_metadata=lambda: None))),
        num_prefill_lookahead_tokens=0, num_hash_lookahead_tokens=0, num_speculative_tokens=0, max_concurrent_batches=1,
        max_in_flight_tokens=0, num_lookahead_tokens=0)


def make_scheduler(config, blocks):
    spec = FullAttentionSpec(**fitting(FullAttentionSpec, block_size=16, num_kv_heads=1, head_size=8, dtype=torch.float32,
                                       use_mla=False))
    scheduler.compute_encoder_budget = lambda *_, **__: (0, 0)
    if hasattr(scheduler, "MultiModalBudget"):
        scheduler.MultiModalBudget = lambda *_, **__: Settings()
    return scheduler.Scheduler(**fitting(
        scheduler.Scheduler.__init__, vllm_config=config, log_stats=True, block_size=16, hash_block_size=16,
        kv_cache_config=KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["0"], spec)]),
        structured_output_manager=Settings(grammar_bitmask=lambda *_: None, accept_tokens=lambda *_: True,
                                          should_advance=lambda *_: False)))


def add(core, count, tokens, age, most=500, status=None, **more):
    """Requests of that age, the first one the oldest."""
    made = []
    for number in range(len(core.scheduler.requests), len(core.scheduler.requests) + count):
        made.append(Request(**fitting(
            Request.__init__, request_id="chatcmpl-%04d" % number, prompt_token_ids=[number] * tokens, pooling_params=None,
            sampling_params=SamplingParams(max_tokens=most), arrival_time=time.time() - age + number / 100, priority=number,
            eos_token_id=None, multi_modal_inputs=None, multi_modal_hashes=None, multi_modal_placeholders=None, **more)))
        if status:
            made[-1].status = next(each for each in RequestStatus if each.name in status)
        core.scheduler.add_request(made[-1])
    return made


class Executor:
    """Makes a token for each request whose prompt has been computed."""

    def __init__(self, core):
        self.core, self.wait = core, 0.003
        self.is_sleeping = False

    def execute_model(self, scheduled, non_block=False):
        if STOP.wait(self.wait):
            stop()
        requests = [self.core.scheduler.requests[each] for each in scheduled.num_scheduled_tokens]
        tokens = [[7] if each.num_computed_tokens >= each.num_tokens else [] for each in requests]
        output = ModelRunnerOutput(**fitting(
            ModelRunnerOutput, req_ids=[each.request_id for each in requests], sampled_token_ids=tokens, spec_token_ids=None,
            req_id_to_index={each.request_id: number for number, each in enumerate(requests)}, logprobs=None,
            prompt_logprobs_dict={}, pooler_output=[]))
        if not non_block:
            return output
        future = Future()
        future.set_result(output)
        return future

    def add_lora(self, *_):
        STOP.wait()
        stop()

    def collective_rpc(self, *_):
        return []

    def sleep(self, _):
        self.is_sleeping = True


def make_core(blocks, steps=True):
    config = settings(blocks)
    core = object.__new__(engine_core.EngineCoreProc)
    core.__dict__.update(
        scheduler=make_scheduler(config, blocks), vllm_config=config, input_queue=queue.Queue(),
        output_queue=queue.Queue(), aborts_queue=queue.Queue(), engines_running=False, batch_queue=None,
        process_input_queue_block=True, _idle_state_callbacks=[], publish_dp_lb_stats=False, check_for_draft_tokens=False,
        async_scheduling=False, enable_fault_tolerance=False, _reset_caches=lambda *_: None, reject_new_requests=False, is_mm_encoder_only=False, is_pooling_model=False,
        capture_iteration_details=lambda *_: Nothing(), log_error_detail=lambda *_: Nothing(),
        _attach_iteration_details=lambda *_: None, _attach_weight_version=lambda *_: None,
        _should_throttle_prefills=lambda *_: False, _handle_client_request=stop)
    core.model_executor = Executor(core)
    real = core.step

    def step_fn():
        if STOP.is_set():
            stop()
        return real() if steps and core.scheduler else time.sleep(0.003) or ({}, False)
    core.step_fn = step_fn
    core.post_step = lambda *_: core.output_queue.queue.clear()
    if hasattr(engine_core, "EngineShutdownState"):
        core.shutdown_state = engine_core.EngineShutdownState.RUNNING
    return core


class Nothing:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


class Stop(BaseException):
    """The next state is wanted."""


def stop(*_):
    raise Stop


def first():
    core = make_core(21, steps=False)
    add(core, 27, 60, 214)
    core.scheduler.schedule()
    return core


def held(status, age, running=0, blocks=20000, **more):
    """Requests that wait for something else, beside running ones."""
    core = make_core(blocks, steps=status != TRANSFER)  # which needs a connector
    add(core, running, 60, 300, most=10 ** 6)
    add(core, 3, 60, age, status=status, **more)
    return core


def too_long():
    """A prompt of more blocks than there are, and three short ones behind it."""
    core = make_core(21)
    add(core, 1, 400, 214)
    add(core, 3, 60, 200)
    return core


def deadlock():
    """A transfer has landed, and its request needs one block more; the other one's has not, and has the rest of the blocks."""
    core = make_core(8, steps=False)
    one, other = add(core, 2, 60, 214)
    for request, blocks in ((one, 4), (other, 3)):
        core.scheduler.kv_cache_manager.allocate_slots(request, blocks * 16 - 4)
    one.num_computed_tokens = 60
    other.status = RequestStatus.WAITING_FOR_REMOTE_KVS
    return core


def serving(count, tokens=60, age=300, blocks=20000, waiting=0, wait=0.003, **named):
    core = make_core(blocks)
    add(core, count, tokens, age, most=10 ** 6)
    add(core, waiting, 60, age)
    core.model_executor.wait = wait
    for name, value in named.items():
        setattr(core, name, value)
    return core


def paused(state):
    core = serving(8, waiting=0)
    core.scheduler.schedule()
    add(core, 4, 60, 200)
    core.scheduler.set_pause_state(getattr(interface.PauseState, state))
    return core


def loading():
    """A client has called for an adapter, which is being loaded."""
    core = make_core(100, steps=False)
    add(core, 3, 60, 30)
    core.scheduler.schedule()
    core.step_fn = lambda: core.add_lora(None)
    return core


def asleep():
    core = make_core(100)
    core.sleep(1)
    return core


def starting():
    core = make_core(100)
    core.scheduler = None
    core._process_input_queue = core.model_executor.add_lora
    return core


GRAMMAR = ("WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR", "WAITING_FOR_FSM")
TRANSFER = ("WAITING_FOR_REMOTE_KVS",)
STATES = {
    "first": first, "too_long": too_long, "deadlock": deadlock,
    "grammar": lambda: held(GRAMMAR, 214),
    "grammar_of_some": lambda: held(GRAMMAR, 214, running=3),
    # And what is healthy.
    "idle": lambda: make_core(100), "prefill": lambda: serving(1, tokens=100000, blocks=7000, wait=0.05),
    "grammar_compiles": lambda: held(GRAMMAR, 30),
    "loads_kv": lambda: held(TRANSFER, 30),
    "session": lambda: held(["WAITING_FOR_STREAMING_REQ"], 3000, resumable=True),
    "burst": lambda: serving(16, blocks=100, waiting=500), "hour": lambda: serving(1, age=3600),
    "paused": lambda: paused("PAUSED_ALL"), "paused_new": lambda: paused("PAUSED_NEW"),
    "lora": loading, "asleep": asleep, "starts": starting,
    "drains": lambda: serving(3, shutdown_state=engine_core.EngineShutdownState.SHUTTING_DOWN),
    "long_step": lambda: serving(8, wait=600),
}
STOP, NEXT = threading.Event(), queue.Queue()


def listen(cores):
    for line in sys.stdin:
        NEXT.put(line.strip())
        STOP.set()
        cores[-1].input_queue.put(())


def main():
    name, cores = "first", []
    threading.Thread(target=listen, args=(cores,), daemon=True).start()
    while True:
        STOP.clear()
        core = STATES[name]()
        cores[:] = [core]
        print("\nready", flush=True)
        try:
            core.run_busy_loop()
        except Stop:
            name = NEXT.get()


main()
