# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang's own requests in an object of its scheduler's class: `real_sglang.py FOLDER`. Prints a line when they are there."""
import sys
import time
from array import array

sys.path.insert(0, sys.argv[1])
from absent_packages import install  # noqa: E402

install({"sglang"})
import torch  # noqa: E402
from sglang.srt.managers import schedule_batch, scheduler  # noqa: E402
from sglang.srt.mem_cache.radix_cache import RadixCache  # noqa: E402
from sglang.srt.sampling.sampling_params import SamplingParams  # noqa: E402


def request(number, old):
    ids = range(60 + number)
    return schedule_batch.Req(rid="rid-%04d" % number, origin_input_text="", sampling_params=SamplingParams(max_new_tokens=9),
                              origin_input_ids=list(ids) if old else array("q", ids))


def allocator(old):
    """With 200 tokens free: 200 slots, or 10 pages."""
    torch.arange, torch.empty = lambda first, end, **_: list(range(first, end)), lambda *_, **__: []
    if old:
        from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool as Allocator
    else:
        from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator as Allocator
    made = object.__new__(Allocator)
    made.__dict__.update(size=200, page_size=20, num_pages=10, device="cpu", is_not_in_free_group=True)
    made.clear()
    return made


def main():
    old = "sglang-0.4" in sys.argv[1]
    made = object.__new__(scheduler.Scheduler)
    made.max_running_requests = 16
    made.waiting_queue = [request(number, old) for number in range(4, 10)]
    made.running_batch = object.__new__(schedule_batch.ScheduleBatch)
    made.running_batch.reqs = [request(number, old) for number in range(4)]
    for each in made.running_batch.reqs:
        each.output_ids.append(5)
    made.last_batch = None
    made.max_total_num_tokens, made.tree_cache = 1000, object.__new__(RadixCache)
    made.tree_cache.evictable_size_ = 300
    made.__dict__["token_to_kv_pool" if old else "token_to_kv_pool_allocator"] = allocator(old)
    if old:
        made.grammar_queue = [request(10, old)]
    else:
        from sglang.srt.constrained.grammar_manager import GrammarManager
        made.grammar_manager = object.__new__(GrammarManager)
        made.grammar_manager.grammar_queue = [request(10, old)]
    print("\nready", flush=True)
    event_loop(made)


def event_loop(self):
    while True:
        time.sleep(0.01)


main()
