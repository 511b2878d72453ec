# SPDX-License-Identifier: GPL-3.0-or-later
# Runs in the target, for Python 3.8 and later; joins bootstrap.py. Code that may await, in a task of the
# event loop of asyncio that runs. A thread of the agent waits for the task meanwhile.
import asyncio

TOP_LEVEL_AWAIT = 0x2000
COROUTINE = 0x80
LOOK_SECONDS = 0.05  # a KeyboardInterrupt from outside comes between two waits


def loops_of_tasks():
    tasks = sys.modules.get("asyncio.tasks")
    for name in "_all_tasks", "_scheduled_tasks", "_eager_tasks":
        try:
            for task in list(getattr(tasks, name, ())):
                yield task.get_loop()
        except RuntimeError:  # another thread adds one
            pass


def loops_of_frames():
    for frame in list(current_frames().values()):
        while frame:
            if frame.f_code.co_name in ("run", "run_forever", "run_until_complete") and \
                    "asyncio" in frame.f_code.co_filename:
                own = frame.f_locals.get("self")
                yield own
                yield getattr(own, "_loop", None)
            frame = frame.f_back


def find_loop():
    """The running event loop; the main thread's if there are several."""
    found, main = [], getattr(sys.modules.get("threading"), "_main_thread", None)
    for source in loops_of_tasks, loops_of_frames:
        for loop in source():
            if isinstance(loop, asyncio.AbstractEventLoop) and loop.is_running() and \
                    not any(each is loop for each in found):
                found.append(loop)
    if not found:
        raise RuntimeError("no event loop of asyncio runs in this process")
    ours = [loop for loop in found if getattr(loop, "_thread_id", 0) == getattr(main, "_ident", None)]
    if len(found) > 1 and len(ours) != 1:
        raise RuntimeError("%d event loops run, and none of them on the main thread" % len(found))
    return found[0] if len(found) == 1 else ours[0]


class Steps:
    """What is awaited in the loop: runs the coroutine, whose output comes to the client."""

    def __init__(self, coroutine, job):
        self.coroutine, self.job, self.busy = coroutine, job, False
        self.lock = lock  # the agent may be gone before the coroutine is

    def __await__(self):
        return self

    __iter__ = __await__

    def __next__(self):
        return self.step(self.coroutine.send, None)

    def send(self, value):
        return self.step(self.coroutine.send, value)

    def throw(self, *what):
        return self.step(self.coroutine.throw, *what)

    def close(self):
        self.coroutine.close()

    def step(self, call, *arguments):
        with self.lock:
            self.busy = self.job is not None
        if not self.busy:
            return call(*arguments)  # the client has left
        enter(self.job, None)
        try:
            return call(*arguments)
        finally:
            leave()
            self.busy = False

    def leave(self):
        """The job is over; no step uses it afterwards."""
        with self.lock:
            self.job = None
        while self.busy:
            try:
                nap()
                settle()
            except KeyboardInterrupt:  # the task was cancelled for the first one
                pass


def nap():
    pause = _thread.allocate_lock()
    pause.acquire()
    pause.acquire(True, LOOK_SECONDS)


async def drive(steps):
    return await steps


async def run_codes(codes, names):
    value = None
    for code in codes:
        value = eval(code, names)
        if code.co_flags & COROUTINE:
            value = await value
    return value


def compile_codes(source, name):
    """The last one has the value."""
    tree = compile(source, name, "exec", ONLY_AST | TOP_LEVEL_AWAIT, True)
    last = tree.body.pop() if tree.body and type(tree.body[-1]).__name__ == "Expr" else None
    codes = [compile(tree, name, "exec", TOP_LEVEL_AWAIT, True)]
    if last is not None:
        flags = future_flags(codes[0].co_flags) | TOP_LEVEL_AWAIT
        codes.append(compile(Expression(last.value), name, "eval", flags, True))
    return codes


def wait_for(task, steps):
    over = _thread.allocate_lock()
    over.acquire()
    task.add_done_callback(lambda _: over.release())
    try:
        while not over.acquire(True, LOOK_SECONDS):
            pass
    except BaseException:
        task.cancel()
        raise
    finally:
        steps.leave()


def evaluate_on_loop(job, source, name, names):
    codes = compile_codes(source, name)
    steps = Steps(run_codes(codes, names), job)
    try:
        loop = find_loop()
    except BaseException:
        steps.close()
        raise
    task = asyncio.run_coroutine_threadsafe(drive(steps), loop)
    wait_for(task, steps)
    try:
        value = task.result()
    except BaseException as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        raise error.with_traceback(trace or error.__traceback__)
    if value is not None and len(codes) > 1:
        send(job, 3, repr(value))
