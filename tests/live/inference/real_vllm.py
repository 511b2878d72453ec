# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM's own scheduler with its own requests and blocks, in its own engine core, without a model: `real_vllm.py FOLDER`.
Twenty blocks, and 27 requests of 60 tokens each, of which 5 can run. Prints a line when it is there."""
import inspect
import queue
import sys
import time
import types

sys.path.insert(0, sys.argv[1])
from absent_packages import Settings, install  # noqa: E402

install({"vllm"})
import torch  # noqa: E402
from vllm.sampling_params import SamplingParams  # noqa: E402
from vllm.v1.core.sched import scheduler  # noqa: E402
from vllm.v1.engine import core as engine_core  # noqa: E402
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec  # noqa: E402
from vllm.v1.request import Request  # noqa: E402


def fitting(function, **arguments):
    """Those of the arguments that this version has."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in names}


def settings():
    return Settings(
        scheduler_config=Settings(
            max_num_seqs=16, max_num_batched_tokens=2048, max_model_len=4096, policy=sys.argv[2], watermark=0.0,
            chunked_prefill_enabled=True, long_prefill_token_threshold=0, max_num_encoder_input_tokens=0,
            encoder_cache_size=0, long_prefill_token_threshold_adaptive=0, max_num_partial_prefills=1),
        cache_config=Settings(num_gpu_blocks=21, block_size=16, prefix_caching_hash_algo="builtin", enable_prefix_caching=False),
        model_config=Settings(max_model_len=4096, runner_type="generate", get_diff_sampling_param=dict),
        parallel_config=Settings(pipeline_parallel_size=1, data_parallel_index=0, data_parallel_rank=0, world_size=1,
                                 decode_context_parallel_size=1, prefill_context_parallel_size=1),
        observability_config=Settings(kv_cache_metrics=False), aux_output_config=Settings(enabled=False),
        ec_manager_config=Settings(get_encoder_cache_manager_obj=lambda: types.SimpleNamespace(
            create_manager=lambda *_, **__: Settings(free=lambda *_: None, get_freed_mm_hashes=list,
                                                     get_manager_metadata=lambda: None))),
        num_prefill_lookahead_tokens=0, num_hash_lookahead_tokens=0, num_speculative_tokens=0, max_concurrent_batches=1,
        max_in_flight_tokens=0, num_lookahead_tokens=0)


def make_scheduler(config):
    spec = FullAttentionSpec(**fitting(FullAttentionSpec, block_size=16, num_kv_heads=1, head_size=8, dtype=torch.float32,
                                       use_mla=False))
    scheduler.compute_encoder_budget = lambda *_, **__: (0, 0)
    if hasattr(scheduler, "MultiModalBudget"):
        scheduler.MultiModalBudget = lambda *_, **__: Settings()
    made = scheduler.Scheduler(**fitting(
        scheduler.Scheduler.__init__, vllm_config=config, log_stats=True, block_size=16, hash_block_size=16,
        kv_cache_config=KVCacheConfig(num_blocks=21, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["0"], spec)]),
        structured_output_manager=Settings(grammar_bitmask=lambda *_: None)))
    for number in range(27):
        made.add_request(Request(**fitting(
            Request.__init__, request_id="chatcmpl-%04d" % number, prompt_token_ids=[number] * 60, pooling_params=None,
            sampling_params=SamplingParams(max_tokens=500), arrival_time=time.time() - 214 + number, priority=number,
            eos_token_id=None, multi_modal_inputs=None, multi_modal_hashes=None, multi_modal_placeholders=None)))
    made.schedule()
    return made


def main():
    config = settings()
    core = object.__new__(engine_core.EngineCoreProc)
    core.__dict__.update(
        scheduler=make_scheduler(config), vllm_config=config, model_executor=None, input_queue=queue.Queue(),
        output_queue=queue.Queue(), aborts_queue=queue.Queue(), engines_running=False, batch_queue=None,
        process_input_queue_block=True, _idle_state_callbacks=[], publish_dp_lb_stats=False,
        post_step=lambda *_: None, step_fn=lambda: time.sleep(0.003) or ({}, False))
    if hasattr(engine_core, "EngineShutdownState"):
        core.shutdown_state = engine_core.EngineShutdownState.RUNNING
    print("\nready", flush=True)
    core.run_busy_loop()


main()
