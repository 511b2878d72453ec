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
MANAGERS = "sglang.srt.managers."


class ReqState:
    __module__ = MANAGERS + "tokenizer_manager"

    def __init__(self, rid):
        self.obj = types.SimpleNamespace(rid=rid)
        # As theirs: of the clock of time.perf_counter().
        self.time_stats = types.SimpleNamespace(created_time=time.perf_counter() - 214, last_time=0.0)


class TokenizerManager:
    __module__ = MANAGERS + "tokenizer_manager"

    def __init__(self):
        self.rid_to_state = {}

    async def handle_loop(self):
        await asyncio.Event().wait()


class Scheduler:
    __module__ = MANAGERS + "scheduler"

    def __init__(self):
        self.waiting_queue, self.max_running_requests, self.last_batch = [], 16, None
        self.running_batch = types.SimpleNamespace(reqs=[])
        self.grammar_manager = types.SimpleNamespace(grammar_queue=[])

    def event_loop_normal(self):
        while True:
            time.sleep(0.002)


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
    return child.pid


def main():
    if sys.argv[1].startswith("---"):
        title("sglang::" + sys.argv[2])
        print(flush=True)
        if sys.argv[2] == "detokenizer":
            DetokenizerManager().event_loop(sys.argv[3] == "behind")
        Scheduler().event_loop_normal()
    pids = {"tokenizer": os.getpid(), "scheduler": start("scheduler_TP0", sys.argv[1]),
            "detokenizer": start("detokenizer", sys.argv[1])}
    manager = TokenizerManager()
    if sys.argv[1] == "behind":
        manager.rid_to_state = {"rid-%d" % number: ReqState("rid-%d" % number) for number in range(27)}
    print(json.dumps(pids), flush=True)
    asyncio.run(manager.handle_loop())


main()
