# SPDX-License-Identifier: GPL-3.0-or-later
"""A program with the processes, classes and attributes that SGLang has, and none of its code: a tokenizer manager, a
scheduler, a detokenizer. `sglang_standin.py STATE` prints the pids as JSON."""
import asyncio
import json
import os
import subprocess
import sys
import time
import types

from vllm_standin import module, title

del sys.modules["vllm"], sys.modules["vllm.v1"]
module("sglang", __version__="0.5.23")
# Of the states in which 4 requests run and 23 wait: free pages of 20 tokens, and tokens of the cache that can be given back.
FREE = {"slots": (10, 100), "kv": (0, 0), "preempting": (0, 0), "cached": (0, 300), "together": (0, 0), "apart": (0, 0), "late": (0, 0)}
# Of several schedulers: where each of them is in a step.
STEPS = {"together": ("all_reduce",) * 3, "apart": ("all_reduce", "load_kernel"), "late": ("all_reduce", "all_reduce", "load_kernel")}
MANAGERS = "sglang.srt.managers."
CHILDREN = []  # of which one that has ended stays a zombie


class ReqState:
    __module__ = MANAGERS + "tokenizer_manager"

    def __init__(self, number):
        self.obj = types.SimpleNamespace(rid="rid-%d" % number)
        # As theirs: of the clock of time.perf_counter(); 0.0: there was no token yet.
        self.time_stats = types.SimpleNamespace(created_time=time.perf_counter() - 214,
                                                last_time=time.perf_counter() - 100 if number < 4 else 0.0)


class Req:
    __module__ = MANAGERS + "schedule_batch"

    def __init__(self, number):
        self.rid, self.origin_input_ids, self.output_ids = "rid-%d" % number, [1] * 60, [5]
        # Those that wait for a transfer have not been in the queue yet.
        self.time_stats = types.SimpleNamespace(scheduler_recv_time=time.perf_counter() - 214, wait_queue_entry_time=0.0)


class DecodeRequest:
    __module__ = "sglang.srt.disaggregation.decode"

    def __init__(self, number):
        self.req, self.waiting_for_input = Req(number), False


class TokenizerManager:
    __module__ = MANAGERS + "tokenizer_manager"

    def __init__(self):
        self.rid_to_state = {}

    async def handle_loop(self):
        await asyncio.Event().wait()


class Scheduler:
    __module__ = MANAGERS + "scheduler"

    def __init__(self, state):
        requests = [Req(number) for number in range(27 if state in FREE else 0)]
        self.waiting_queue, self.max_running_requests, self.last_batch = requests[4:], 4 if state == "slots" else 16, None
        self.running_batch = types.SimpleNamespace(reqs=requests[:4])
        self.grammar_manager = types.SimpleNamespace(grammar_queue=[])
        self.max_total_num_tokens, self.enable_priority_preemption = 1000, state == "preempting"
        self.disagg_decode_prealloc_queue = types.SimpleNamespace(queue=[DecodeRequest(number) for number in range(3)] if state == "prealloc" else [])
        pages, cached = FREE.get(state, (10, 100))
        self.tree_cache = types.SimpleNamespace(evictable_size_=cached)
        self.token_to_kv_pool_allocator = types.SimpleNamespace(free_pages=list(range(pages)), release_pages=[], page_size=20)

    def event_loop_normal(self, does):
        if does == "dead":
            os._exit(1)
        if does in ("all_reduce", "load_kernel"):
            self.run_batch(does)
        while True:
            time.sleep(0.002)


    def run_batch(self, does):
        all_reduce() if does == "all_reduce" else load_kernel()


def all_reduce():
    """Waits for the other ranks."""
    time.sleep(600)


def load_kernel():
    """Does not come to where they are."""
    time.sleep(600)


class DetokenizerManager:
    __module__ = MANAGERS + "detokenizer_manager"

    def __init__(self):
        self.decode_status = {}

    def event_loop(self, behind):
        if behind:
            self.decode()
        sock_recv()

    def decode(self):
        time.sleep(600)


def sock_recv():
    """Waits for the scheduler."""
    time.sleep(600)


def start(role, state):
    child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "-" * 40, role, state], stdout=subprocess.PIPE)
    child.stdout.readline()
    CHILDREN.append(child)
    return child.pid


def main():
    if sys.argv[1].startswith("---"):
        title("sglang::" + sys.argv[2])
        print(flush=True)
        if sys.argv[2] == "detokenizer":
            DetokenizerManager().event_loop(sys.argv[3] == "behind")
        steps = STEPS.get(sys.argv[3])
        Scheduler(sys.argv[3]).event_loop_normal(steps[int(sys.argv[2][-1])] if steps else sys.argv[3])
    schedulers = [start("scheduler_TP%d" % rank, sys.argv[1]) for rank in range(len(STEPS.get(sys.argv[1], "1")))]
    pids = {"tokenizer": os.getpid(), "scheduler": schedulers[0], "schedulers": schedulers, "detokenizer": start("detokenizer", sys.argv[1])}
    manager = TokenizerManager()
    if sys.argv[1] != "idle":
        manager.rid_to_state = {"rid-%d" % number: ReqState(number) for number in range(27)}
    print(json.dumps(pids), flush=True)
    asyncio.run(manager.handle_loop())


main()
