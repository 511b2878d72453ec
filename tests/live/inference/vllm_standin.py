# SPDX-License-Identifier: GPL-3.0-or-later
"""A program with the processes, classes and attributes that vLLM's engine V1 has, and none of its code: an API server,
an engine core, two workers. `vllm_standin.py STATE [COUNT]` brings it into one of STATES, with COUNT requests, and
prints the pids as JSON."""
import asyncio
import collections
import ctypes
import ctypes.util
import enum
import json
import os
import queue
import subprocess
import sys
import threading
import time
import types
from multiprocessing import resource_tracker, shared_memory

AGE = 214  # seconds of the oldest request


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made


module("vllm", __version__="0.33.0")
for part in ("v1", "v1.engine.core", "v1.request", "v1.core.sched.scheduler", "v1.engine.async_llm",
             "v1.executor.multiproc_executor"):
    module("vllm." + part)


def title(text):
    """Writes over the arguments and the kernel's name of the process, as setproctitle does."""
    set_name = 15
    ctypes.CDLL(None).prctl(set_name, text.encode(), 0, 0, 0)
    with open("/proc/self/stat", encoding="ascii") as file:
        start, end = map(int, file.read().rsplit(")", 1)[1].split()[45:47])
    ctypes.memmove(start, text.encode()[:end - start - 1].ljust(end - start, b"\0"), end - start)


class RequestStatus(enum.IntEnum):
    __module__ = "vllm.v1.request"
    WAITING = 1
    WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR = 2
    WAITING_FOR_REMOTE_KVS = 3
    RUNNING = 4
    PREEMPTED = 5
    FINISHED_LENGTH_CAPPED = 7


class PauseState(enum.IntEnum):
    __module__ = "vllm.v1.core.sched.interface"
    UNPAUSED = 0
    PAUSED_ALL = 2


class Request:
    __module__ = "vllm.v1.request"

    def __init__(self, number, status, age, computed=0, output=0):
        self.request_id = "chatcmpl-%04d" % number
        self.client_index = 0
        self.priority = 0
        self.lora_request = None
        self.arrival_time = time.time() - age
        self.status = status
        self.num_prompt_tokens = 100 + number
        self._output_token_ids = [1] * output
        self.num_computed_tokens = computed


class FCFSRequestQueue(collections.deque):
    __module__ = "vllm.v1.core.sched.request_queue"


class FreeKVCacheBlockQueue:
    __module__ = "vllm.v1.core.kv_cache_utils"

    def __init__(self, free):
        self.num_free_blocks = free


class BlockHashToBlockMap:
    __module__ = "vllm.v1.core.block_pool"

    def __init__(self):
        self._cache = {b"hash": 1}


class BlockPool:
    __module__ = "vllm.v1.core.block_pool"

    def __init__(self, total, free):
        self.num_gpu_blocks = total
        self.free_block_queue = FreeKVCacheBlockQueue(free)
        self.cached_block_hash_to_block = BlockHashToBlockMap()


class FullAttentionManager:
    __module__ = "vllm.v1.core.single_type_kv_cache_manager"

    def __init__(self):
        self.req_to_blocks = collections.defaultdict(list)


class UnitaryKVCacheCoordinator:
    __module__ = "vllm.v1.core.kv_cache_coordinator"

    def __init__(self):
        self.single_type_managers = (FullAttentionManager(),)


class KVCacheManager:
    __module__ = "vllm.v1.core.kv_cache_manager"

    def __init__(self, total, free):
        self.block_pool = BlockPool(total, free)
        self.coordinator = UnitaryKVCacheCoordinator()


class Scheduler:
    __module__ = "vllm.v1.core.sched.scheduler"

    def __init__(self, limit, total, free):
        self.max_num_running_reqs = limit
        self.block_size = 16
        self.requests = {}
        self.waiting = FCFSRequestQueue()
        self.skipped_waiting = FCFSRequestQueue()
        self.running = []
        self._pause_state = PauseState.UNPAUSED
        self.kv_cache_manager = KVCacheManager(total, free)

    def add(self, where, request, blocks=0):
        self.requests[request.request_id] = request
        if where is not None:
            where.append(request)
        manager = self.kv_cache_manager.coordinator.single_type_managers[0]
        manager.req_to_blocks[request.request_id] += range(blocks)


class ShmRingBuffer:
    __module__ = "vllm.distributed.device_communicators.shm_broadcast"

    def __init__(self, name=None):
        self.n_reader, self.max_chunk_bytes, self.max_chunks = 3, 100, 10
        size = (self.max_chunk_bytes + 1 + self.n_reader) * self.max_chunks
        self.shared_memory = shared_memory.SharedMemory(create=name is None, size=size, name=name)
        if name:
            resource_tracker.unregister(self.shared_memory._name, "shared_memory")

    def write(self, readers):
        """All chunks are written, and read by these."""
        start = self.max_chunk_bytes * self.max_chunks
        for chunk in range(self.max_chunks):
            at = start + chunk * (1 + self.n_reader)
            self.shared_memory.buf[at:at + 1 + self.n_reader] = bytes([1, *(number in readers for number in range(self.n_reader))])


class MessageQueue:
    """Its reader looks again and again, as theirs does."""
    __module__ = "vllm.distributed.device_communicators.shm_broadcast"

    def __init__(self, buffer=None, reader=-1):
        self.buffer, self.local_reader_rank, self._is_writer, self.current_idx = buffer, reader, reader < 0, 0

    def acquire_write(self):
        """No chunk is free."""
        while True:
            time.sleep(0.002)

    def dequeue(self):
        while True:
            self.acquire_read()

    def acquire_read(self):
        time.sleep(0.002)

    for function in (acquire_read, acquire_write):
        function.__code__ = function.__code__.replace(co_filename="/vllm/distributed/device_communicators/shm_broadcast.py")


class WorkerProcHandle:
    __module__ = "vllm.v1.executor.multiproc_executor"

    def __init__(self, pid):
        self.proc = types.SimpleNamespace(_popen=types.SimpleNamespace(pid=pid))


class MultiprocExecutor:
    __module__ = "vllm.v1.executor.multiproc_executor"

    def __init__(self, workers, buffer):
        self.workers = workers
        self.rpc_broadcast_mq = MessageQueue(buffer)
        self.response_mq = MessageQueue()

    def collective_rpc(self, full):
        if full:
            self.rpc_broadcast_mq.acquire_write()
        return self.get_response()

    def get_response(self):
        return self.response_mq.dequeue()


class EngineCore:
    __module__ = "vllm.v1.engine.core"

    def __init__(self, scheduler, executor):
        self.scheduler = scheduler
        self.model_executor = executor

    def step(self):
        """In one process with the model: the wait for a GPU."""
        self.synchronize()

    def synchronize(self):
        time.sleep(600)


class EngineCoreProc(EngineCore):
    __module__ = "vllm.v1.engine.core"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.input_queue = queue.Queue()
        self.output_queue = queue.Queue()

    def run_busy_loop(self, state):
        if STATES[state]["core"] == "die":
            os._exit(1)
        if STATES[state]["core"] in ("reply", "write"):
            self.model_executor.collective_rpc(STATES[state]["core"] == "write")
        while STATES[state]["core"] == "spin":
            self.schedule_nothing()
        if STATES[state]["core"] == "step":
            self.step()
        while STATES[state]["core"] == "serve":
            self.serve(state)
        self._process_input_queue()

    def _process_input_queue(self):
        self.input_queue.get()

    def process_input_sockets(self, evicts):
        while True:
            poll()
            while evicts:
                evict()

    def schedule_nothing(self):
        time.sleep(0.002)

    def serve(self, state):
        """Requests come and end, a token at each step."""
        for request in list(self.scheduler.running):
            request.num_computed_tokens += 1
            request._output_token_ids.append(1)
            if len(request._output_token_ids) > 50 and not STATES[state].get("lost") and not STATES[state].get("lasting"):
                self.scheduler.running.remove(request)
                del self.scheduler.requests[request.request_id]
                fresh = Request(int(request.request_id[9:]), RequestStatus.RUNNING, 0)
                self.scheduler.add(self.scheduler.running, fresh)
        time.sleep(0.002)


def poll():
    """Waits for messages."""
    time.sleep(0.05)


poll.__code__ = poll.__code__.replace(co_filename="/site-packages/zmq/sugar/poll.py")


def evict():
    """Of a cache: it never has room."""
    time.sleep(0.001)


class Worker:
    __module__ = "vllm.v1.worker.gpu_worker"

    def add_lora(self):
        time.sleep(600)

    def load_model(self):
        time.sleep(600)


class WorkerProc:
    __module__ = "vllm.v1.executor.multiproc_executor"

    def __init__(self, rank, buffer):
        self.rank = rank
        self.rpc_broadcast_mq = MessageQueue(buffer, rank)

    def worker_busy_loop(self, does):
        if does == "die":
            os._exit(1)
        if does in ("step", "spin", "compile", "all_reduce"):
            self.execute_model(does)
        if does in ("add_lora", "load_model"):
            getattr(Worker(), does)()
        self.rpc_broadcast_mq.dequeue()

    def execute_model(self, does):
        if does == "compile":
            compile_kernel()
        if does == "all_reduce":
            all_reduce()
        end = time.monotonic() + 600
        while does == "spin" and time.monotonic() < end:
            os.sched_yield()
        time.sleep(600)


def all_reduce():
    """Waits for the other ranks."""
    time.sleep(600)


def compile_kernel():
    """A child with the name of a compiler, which sleeps."""
    subprocess.run(["nvcc", "600"], check=False, executable=os.environ["STANDIN_NVCC"])


class RequestStateStats:
    __module__ = "vllm.v1.metrics.stats"

    def __init__(self, age, tokens, silent):
        self.arrival_time = time.time() - age
        self.num_generation_tokens = tokens
        self.last_token_ts = time.monotonic() - min(age, silent) if tokens else 0.0


class RequestState:
    __module__ = "vllm.v1.engine.output_processor"

    def __init__(self, number, age, tokens, silent):
        self.request_id = "chatcmpl-%04d" % number
        self.prompt_len = 100 + number
        self.lora_name = None
        self.stats = RequestStateStats(age, tokens, silent) if silent else None


class OutputProcessor:
    __module__ = "vllm.v1.engine.output_processor"

    def __init__(self):
        self.request_states = {}


class AsyncLLM:
    __module__ = "vllm.v1.engine.async_llm"

    def __init__(self):
        self.output_processor = OutputProcessor()
        self.engine_core = types.SimpleNamespace(resources=types.SimpleNamespace(engine_manager=types.SimpleNamespace(processes=[])))

    async def generate(self, number):
        """Waits for outputs."""
        await asyncio.Event().wait()


# What the engine core, the workers and the API server do, and how many requests are where. Of the requests of the API
# server, `known` are in the core, too, where `lost` are that the API server does not have. `free` of 1000 blocks.
STATES = {
    "healthy": {"core": "serve", "workers": ("idle", "idle"), "running": 16, "free": 800, "age": 1},
    "idle": {"core": "idle", "workers": ("idle", "idle"), "free": 1000},
    "kv": {"core": "spin", "workers": ("idle", "idle"), "running": 4, "waiting": 12, "free": 0, "limit": 16},
    "deferred": {"core": "spin", "workers": ("idle", "idle"), "skipped": 16, "waiting": 11, "free": 600, "limit": 16,
                 "status": RequestStatus.WAITING_FOR_REMOTE_KVS},
    "transfer": {"core": "spin", "workers": ("idle", "idle"), "skipped": 3, "free": 600,
                 "status": RequestStatus.WAITING_FOR_REMOTE_KVS},
    "grammar": {"core": "spin", "workers": ("idle", "idle"), "skipped": 5, "free": 900,
                "status": RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR},
    "reply": {"core": "reply", "workers": ("idle", "idle"), "running": 8, "free": 500},
    "dead": {"core": "reply", "workers": ("idle", "die"), "running": 8, "free": 500},
    "spin": {"core": "reply", "workers": ("idle", "spin"), "running": 8, "free": 500},
    "together": {"core": "reply", "workers": ("all_reduce",) * 3, "running": 8, "free": 500},
    "apart": {"core": "reply", "workers": ("all_reduce", "step"), "running": 8, "free": 500},
    "late": {"core": "reply", "workers": ("all_reduce", "all_reduce", "step"), "running": 8, "free": 500},
    # A long step: the last token was made just now; and where nothing notes tokens.
    "step": {"core": "reply", "workers": ("idle", "step"), "running": 8, "free": 500, "silent": 1e-3},
    "unknown": {"core": "reply", "workers": ("idle", "step"), "running": 8, "free": 500, "silent": 0},
    "ring": {"core": "write", "workers": ("idle", "step"), "running": 8, "free": 500},
    "compile": {"core": "reply", "workers": ("idle", "compile"), "running": 8, "free": 500},
    "full": {"core": "idle", "workers": ("idle", "idle"), "free": 1000, "stranded": 27},
    "reader": {"core": "idle", "workers": ("idle", "idle"), "free": 1000, "stranded": 27},
    # Of two engine cores, one is on another machine.
    "far": {"core": "idle", "workers": ("idle", "idle"), "free": 1000, "stranded": 27, "peers": 2},
    "behind": {"core": "idle", "workers": ("idle", "idle"), "free": 1000, "stranded": 27, "tokens": 5},
    # The model runs in the engine core itself; and with a worker, for the first token of one long prompt.
    "single": {"core": "step", "workers": ("idle", "idle"), "running": 8, "free": 500},
    "prefill": {"core": "reply", "workers": ("idle", "step"), "running": 1, "free": 500, "age": 60, "tokens": 0},
    "warm_up": {"core": "reply", "workers": ("compile", "compile"), "free": 1000},
    "weights": {"core": "reply", "workers": ("load_model", "load_model"), "free": 1000},
    "draining": {"core": "serve", "workers": ("idle", "idle"), "running": 3, "free": 990, "age": 300},
    "long_one": {"core": "serve", "workers": ("idle", "idle"), "running": 1, "free": 900, "age": 3600, "lasting": True},
    "paused": {"core": "idle", "workers": ("idle", "idle"), "running": 16, "waiting": 4, "limit": 16, "free": 500, "paused": True},
    "lora": {"core": "reply", "workers": ("add_lora", "add_lora"), "running": 8, "free": 500, "silent": 30},
    "offload": {"core": "spin", "workers": ("idle", "idle"), "skipped": 3, "free": 600, "age": 30,
                "status": RequestStatus.WAITING_FOR_REMOTE_KVS},
    "burst": {"core": "serve", "workers": ("idle", "idle"), "running": 256, "waiting": 2000, "limit": 256, "free": 0, "age": 45},
    # Of a server that only prefills: ended, and the other side has not fetched its blocks.
    "fetched_late": {"core": "spin", "workers": ("idle", "idle"), "ended": 8, "free": 400, "age": 45},
    "ended": {"core": "die", "workers": ("idle", "idle"), "free": 1000, "stranded": 27},
    "reaped": {"core": "die", "workers": ("idle", "idle"), "free": 1000, "stranded": 27},
    "gone": {"core": "serve", "workers": ("idle", "idle"), "running": 16, "free": 800, "lost": 16},
    "blocked": {"core": "idle", "workers": ("idle", "idle"), "free": 1000, "stranded": 3, "loop": "blocked"},
    "starved": {"core": "idle", "workers": ("idle", "idle"), "free": 1000, "stranded": 3, "loop": "starved"},
}


def fill(scheduler, state, count):
    """The requests of the core; their numbers."""
    status = state.get("status", RequestStatus.WAITING)
    number = 0
    for name, where, its in (("running", scheduler.running, RequestStatus.RUNNING),
                             ("skipped", scheduler.skipped_waiting, status),
                             ("waiting", scheduler.waiting, RequestStatus.WAITING)):
        for _ in range(state.get(name, 0)):
            age = state.get("age", AGE) * (1 - number / 10000)
            scheduler.add(where, Request(number, its, age, computed=100 if name == "running" else 0), 0 if name == "waiting" else 5)
            number += 1
    for _ in range(state.get("ended", 0)):
        scheduler.add(None, Request(number, RequestStatus.FINISHED_LENGTH_CAPPED, state["age"], computed=100), 5)
        number += 1
    for _ in range(count - number if count else 0):
        scheduler.add(scheduler.waiting, Request(number, RequestStatus.WAITING, AGE))
        number += 1


def zmq_socket(bound, limit):
    """A socket of libzmq at the place that the test names: connected to it, or the place itself."""
    zmq = ctypes.CDLL(ctypes.util.find_library("zmq"))
    zmq.zmq_ctx_new.restype = zmq.zmq_socket.restype = ctypes.c_void_p
    dealer, high_water_marks = 5, (23, 24)
    made = ctypes.c_void_p(zmq.zmq_socket(ctypes.c_void_p(zmq.zmq_ctx_new()), dealer))
    for option in high_water_marks:
        assert not zmq.zmq_setsockopt(made, option, ctypes.byref(ctypes.c_int(limit)), 4)
    assert not (zmq.zmq_bind if bound else zmq.zmq_connect)(made, os.environ["STANDIN_ZMQ"].encode())
    return zmq, made


def send_requests(count):
    """As many as there is room for."""
    nowhere = "nowhere" in os.environ["STANDIN_ZMQ"]
    zmq, socket = zmq_socket(not nowhere, 7 if nowhere else 1000)
    sent = sum(zmq.zmq_send(socket, b"x", 1, 1 if nowhere else 0) == 1 for _ in range(count))
    assert sent == (7 if nowhere else count)


def run_core(name, count):
    title("VLLM::EngineCore")
    if os.environ.get("STANDIN_ZMQ") and "nowhere" not in os.environ["STANDIN_ZMQ"]:
        zmq_socket(False, 1000)
    state = STATES[name]
    scheduler = Scheduler(state.get("limit", 256), 1000, state["free"])
    fill(scheduler, state, count)
    scheduler._pause_state = PauseState.PAUSED_ALL if state.get("paused") else PauseState.UNPAUSED
    buffer = ShmRingBuffer()
    buffer.write({0} if state["core"] == "write" else {0, 1, 2})
    workers = [start("worker", name, str(rank), buffer.shared_memory.name) for rank in range(len(state["workers"]))]
    core = EngineCoreProc(scheduler, MultiprocExecutor([WorkerProcHandle(worker.pid) for worker in workers],
                                                       buffer))
    buffer.shared_memory.unlink()
    threading.Thread(target=core.process_input_sockets, args=(name == "reader",), daemon=True).start()
    print(json.dumps([worker.pid for worker in workers]), flush=True)
    core.run_busy_loop(name)


def run_worker(name, rank, buffer):
    title("VLLM::Worker_TP%d" % rank)
    worker = WorkerProc(rank, ShmRingBuffer(buffer))
    print(flush=True)
    worker.worker_busy_loop(STATES[name]["workers"][rank])


def starve():
    """Threads that compute: each wait for the GIL of the loop's thread lasts the longer."""
    sys.setswitchinterval(0.2)

    def tokenize():
        while True:
            sum(range(1000))
    for _ in range(3):
        threading.Thread(target=tokenize, daemon=True, name="tokenizer").start()


def block_loop():
    """What should not be called in a coroutine."""
    time.sleep(600)


async def serve(llm, name, count, announce):
    state = STATES[name]
    known = state.get("running", 0) + state.get("skipped", 0) + state.get("waiting", 0) if not state.get("lost") else 0
    handlers = []
    for number in range(max(count, known) + state.get("stranded", 0)):
        age = state.get("age", AGE)
        llm.output_processor.request_states["chatcmpl-%04d" % number] = RequestState(
            number, age * (1 - number / 10000), state.get("tokens", 5 if number < state.get("running", 0) else 0),
            state.get("silent", 100))
        if number < 50:
            handlers.append(asyncio.ensure_future(llm.generate(number)))
    announce()
    if state.get("loop") == "blocked":
        block_loop()
    if state.get("loop") == "starved":
        starve()
        while True:
            await asyncio.sleep(0)
    await asyncio.gather(asyncio.Event().wait(), *handlers)


def run_api_server(name, count):
    title("VLLM::APIServer")
    core = start("core", name, str(count))
    workers = json.loads(core.stdout.readline())
    pids = {"api": os.getpid(), "core": core.pid, "workers": workers}
    if os.environ.get("STANDIN_ZMQ"):
        send_requests(27)
    if STATES[name]["core"] == "die":
        os.waitid(os.P_PID, core.pid, os.WEXITED | os.WNOWAIT)
    if name == "reaped":
        core.wait()
    llm = AsyncLLM()
    llm.engine_core.core_engines = [rank.to_bytes(2, "little") for rank in range(STATES[name].get("peers", 1))]
    llm.engine_core.resources.engine_manager.processes.append(types.SimpleNamespace(_popen=types.SimpleNamespace(pid=core.pid)))
    asyncio.run(serve(llm, name, count, lambda: print(json.dumps(pids), flush=True)))


def start(role, *arguments):
    """Another process, which has printed a line when it is ready; a worker's is read here."""
    child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "-" * 40, role, *arguments],
                             stdout=subprocess.PIPE, universal_newlines=True)
    if role == "worker":
        child.stdout.readline()
    return child


if __name__ == "__main__":
    if sys.argv[1].startswith("---"):
        if sys.argv[2] == "core":
            run_core(sys.argv[3], int(sys.argv[4]))
        run_worker(sys.argv[3], int(sys.argv[4]), sys.argv[5])
    run_api_server(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
