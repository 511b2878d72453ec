# SPDX-License-Identifier: GPL-3.0-or-later
"""A program with workers that hangs: `pools.py CASE FOLDER`. It prints "ready" just before it does so."""
import concurrent.futures
import multiprocessing
import os
import signal
import socket
import sys
import threading

LOCK = threading.Lock()


def stuck(number=2):
    if number == 2:
        a, b = socket.socketpair()
        a.recv(1)
        b.close()
    return number


def dies(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def take(number):
    """The lock was held when this process was forked."""
    with LOCK:
        return number


def spin(number):
    while True:
        number = (number + 1) % 1000003
        str(number)


def ready():
    print("ready", flush=True)


def case_pool_stuck():
    with multiprocessing.get_context("fork").Pool(3) as pool:
        ready()
        pool.map(stuck, range(6), chunksize=1)


def case_pool_lost():
    """The pool starts another worker, and nobody has the work of the one that was killed."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        ready()
        pool.map(dies, range(4), chunksize=1)


def executor(function, numbers):
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        ready()
        list(pool.map(function, numbers))


def case_executor_stuck():
    executor(stuck, range(6))


def case_executor_lock():
    with LOCK:
        executor(take, [1])


def case_join_process():
    process = multiprocessing.get_context("fork").Process(target=stuck)
    process.start()
    ready()
    process.join()


def case_two_stuck():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        ready()
        pool.map(stuck, [2, 2], chunksize=1)


def case_busy():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        ready()
        pool.map(spin, [0])


def with_ray(way):
    import ray  # pylint: disable=import-outside-toplevel
    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", _temp_dir=sys.argv[2])

    @ray.remote
    class Actor:
        def know(self, other):
            self.other = other  # pylint: disable=attribute-defined-outside-init

        def call(self):
            return ray.get(self.other.answer.remote())

        def answer(self):
            return 1

        def hang(self):
            return stuck()

    a, b = Actor.remote(), Actor.remote()
    ray.get([a.know.remote(a if way == "ray_itself" else b), b.know.remote(a)])
    ready()
    if way == "ray_stuck":
        ray.get(a.hang.remote())
    ray.get([a.call.remote()] + ([b.call.remote()] if way == "ray_each_other" else []))


def case_dask_stuck():
    from distributed import Client, LocalCluster  # pylint: disable=import-outside-toplevel
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        ready()
        client.gather(client.map(stuck, range(4)))


def celery_app():
    import celery  # pylint: disable=import-outside-toplevel
    app = celery.Celery("pools", broker="filesystem://", broker_transport_options={
        "data_folder_in": sys.argv[2], "data_folder_out": sys.argv[2], "control_folder": sys.argv[2]})
    return app, app.task(stuck, name="stuck")


def case_celery_stuck():
    app, task = celery_app()
    ready()
    task.delay()
    app.worker_main(["worker", "-c", "2", "-l", "ERROR"])


if __name__ == "__main__":
    CASE = sys.argv[1]
    with_ray(CASE) if CASE.startswith("ray_") else globals()["case_" + CASE]()
