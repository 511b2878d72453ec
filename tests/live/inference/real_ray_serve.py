# SPDX-License-Identifier: GPL-3.0-or-later
"""Ray Serve itself with one replica of two slots and five clients: `real_ray_serve.py STATE FOLDER PORT`. Prints a line when the clients
ask, and ends Ray after a line on its stdin."""
import asyncio
import os
import signal
import sys
import threading
import time
import urllib.request
from pathlib import Path

import ray
from ray import serve

STATE, FOLDER, PORT = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
URL = "http://127.0.0.1:%d/" % PORT


@serve.deployment(num_replicas=1, max_ongoing_requests=2)
class Model:
    def __init__(self):
        if (FOLDER / "slow").exists():
            time.sleep(600)

    async def __call__(self, request):
        if STATE == "blocked":
            time.sleep(600)
        await asyncio.sleep(600 if STATE == "full" else 0.2)
        return str(os.getpid())


def ask():
    while True:
        with urllib.request.urlopen(URL) as answer:
            answer.read()


def start():
    """It gives itself half a minute, which may be too short on a busy machine."""
    for last in (False, False, False, True):
        try:
            return ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20, _temp_dir=str(FOLDER))
        except Exception as error:
            if last or "timed out" not in str(error):
                raise
            ray.shutdown()


def main():
    start()
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    serve.run(Model.bind(), name="app")
    if STATE == "dead":
        with urllib.request.urlopen(URL) as answer:
            (FOLDER / "slow").touch()
            os.kill(int(answer.read()), signal.SIGKILL)
    for _ in range(5):
        threading.Thread(target=ask, daemon=True).start()
    print("\nready", flush=True)
    sys.stdin.readline()
    ray.shutdown()
    print("\nended", flush=True)
    os._exit(0)


main()
