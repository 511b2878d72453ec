# SPDX-License-Identifier: GPL-3.0-or-later
"""A program with the classes and attributes that Ray Serve has, and none of its code: a router in the process that sends
requests, and a replica with four slots. `ray_standin.py STATE` prints the pids as JSON. Requests are 90 seconds old."""
import asyncio
import collections
import json
import os
import subprocess
import sys
import threading
import time
import types

from vllm_standin import module, title

del sys.modules["vllm"], sys.modules["vllm.v1"]
module("ray", __version__="2.60.0")
module("ray.serve")
# Requests in the replica, requests in the router, and what a request does in the replica.
STATES = {"idle": (0, 0, None), "blocked": (3, 0, "block"), "one": (1, 0, "block"), "behind_one": (1, 2, "block"),
          "full": (4, 5, "await"), "none": (0, 5, None), "busy": (3, 5, "await")}


class Replica:
    __module__ = "ray.serve._private.replica"

    def __init__(self, running):
        self._semaphore = types.SimpleNamespace(_waiters=None)
        self._metrics_manager = types.SimpleNamespace(_num_ongoing_requests=running, _max_ongoing_requests=4)

    def wait(self):
        while True:
            time.sleep(0.01)


class PendingRequest:
    __module__ = "ray.serve._private.request_router.common"

    def __init__(self, number):
        self.created_at, self.metadata = time.time() - 90, types.SimpleNamespace(request_id="request-%d" % number)


class RequestRouter:
    __module__ = "ray.serve._private.request_router.request_router"

    def __init__(self, pending):
        self._pending_requests_to_fulfill = collections.deque(map(PendingRequest, range(pending)))
        self._replicas = {} if sys.argv[1] == "none" else {"replica": object()}

    def wait(self):
        time.sleep(600)


async def handle(does):
    """The program's own code."""
    if does == "block":
        time.sleep(600)
    await asyncio.Event().wait()


def serve(state):
    title("ray::ServeReplica:m:Model")
    running, _, does = STATES[state]
    loop = asyncio.new_event_loop()
    for _ in range(running):
        loop.create_task(handle(does))

    def _run_user_code_event_loop():
        loop.run_forever()
    threading.Thread(target=_run_user_code_event_loop, daemon=True).start()
    print(flush=True)
    Replica(running).wait()


if __name__ == "__main__":
    if sys.argv[1].startswith("---"):
        serve(sys.argv[2])
    child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "-" * 40, sys.argv[1]], stdout=subprocess.PIPE)
    child.stdout.readline()
    print(json.dumps({"router": os.getpid(), "replica": child.pid}), flush=True)
    RequestRouter(STATES[sys.argv[1]][1]).wait()
