# SPDX-License-Identifier: GPL-3.0-or-later
# Joins torch.py when operators are first recorded: torch's own profiler, Kineto, runs in the thread that
# trains for a few steps. What it has is sent as the text that it writes; it is parsed elsewhere. The
# agent adds:
#   torch_op_rows(table, lines)   rows of python.torch_ops (0) or python.torch_kernels (1): 0 or an errno value
#   torch_hush(level)             of what level Kineto's messages are printed from now on: the one before, or -1
OPS_PIECE = 1 << 16
OPS_PATIENCE = 2  # seconds for the next call of a module, once it is to end
OPS_STRANGE = 3  # steps in a row of another optimizer, after which that one counts
OPS_NOTHING, OPS_BEFORE, OPS_RUNS, OPS_AFTER, OPS_OVER = range(5)
OPS_QUIET = 1 << 20  # a level that no message has
OPS_INJECTED = "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"  # as Nsight's launcher sets them
OPS_PLAIN = {i: chr(i) if 32 <= i < 127 and chr(i) not in "\"\\" else "?" for i in range(256)}
ops_now = [None]  # the Operators that run


def ops_autograd():
    return sys.modules["torch.autograd.profiler"]


def other_profiler(torch):
    """Which profiler is in the way, for this thread."""
    import os

    enabled = getattr(torch.autograd, "_profiler_enabled", None) or getattr(
        torch._C._autograd, "_profiler_enabled", bool)
    if enabled() or getattr(ops_autograd(), "_is_profiler_enabled", False):
        return "torch.profiler runs already"
    for name in OPS_INJECTED if torch.cuda.is_initialized() else ():
        if os.environ.get(name):
            return "another profiler of the GPU is loaded: %s is set" % name
    return None


def ops_problem(torch):
    """Why operators cannot be recorded at all."""
    available = getattr(torch.autograd, "kineto_available", bool)
    if not available():
        return "this torch, %s, was built without Kineto, its profiler" % torch.__version__
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "this Python runs without a GIL, where operators are not recorded yet"
    if ops_now[0] and ops_now[0].state == OPS_OVER:
        forget_operators()  # it was left by its client
    if ops_now[0]:
        return "another client records operators"
    return other_profiler(torch)


class Operators:
    """One recording. Its functions run in the thread that trains, but for wait() and put()."""

    def __init__(self, torch, count):
        self.torch, self.left, self.state = torch, count, OPS_NOTHING
        self.thread = self.leader = self.profile = self.result = None
        self.strange, self.first, self.last, self.late = 0, -1, 0, False
        self.before, self.after, self.steps, self.costs = -1, -1, [], [0, 0, 0]
        self.undo, self.hooks, self.named, self.open = [], [], {}, {}
        self.problem = self.note = ""
        self.level = -1  # of Kineto's messages
        self.bare = False  # modules are not named, since torch.compile is used
        self.wake = _thread.allocate_lock()
        self.wake.acquire()
        import time

        self.clock = time.monotonic

    def stepping(self, *_):
        """Nothing has to be done before an optimizer's step."""

    def stepped(self, optimizer, *_):
        try:
            self.pass_step(optimizer)
        except Exception as error:
            self.stop("torch's profiler failed: %s: %s" % (type(error).__name__, error))

    def is_leader(self, optimizer):
        here = get_ident(), id(optimizer)
        if (self.thread, self.leader) == here:
            self.strange = 0
            return True
        self.strange += 1
        if self.thread is None or self.strange >= OPS_STRANGE and self.state <= OPS_BEFORE:
            self.thread, self.leader = here
            self.state, self.last = OPS_BEFORE, self.clock()
        return False

    def pass_step(self, optimizer):
        """The first step is timed, the next ones are recorded, and one after them is timed again."""
        now = self.clock()
        if self.state == OPS_OVER or not self.is_leader(optimizer):
            return
        if self.late:
            self.stop()
            return
        length, state = now - self.last, self.state
        if state == OPS_BEFORE:
            problem = torch_busy(self.torch)
            self.before, self.bare = length, bool(problem) and "compile" in problem
            self.note = "modules have no names, since torch.compile is used" if self.bare else ""
            if not problem or self.bare:
                self.first = steps_of(optimizer)
                self.begin()
        elif state == OPS_RUNS:
            self.steps.append(length)
            self.mark()
            self.left -= 1
            if not self.left:
                self.end()
        elif state == OPS_AFTER:
            self.after = length
            self.stop()
        self.last = self.clock()

    def hush(self):
        """Kineto has messages, which are for the program's author."""
        before = torch_hush(OPS_QUIET)
        if before != OPS_QUIET:
            self.level = before

    def mark(self):
        """A step begins here, on the clock of the profile."""
        with self.range("probing step %d" % (max(self.first, 0) + len(self.steps) + 1)):
            pass

    def begin(self):
        torch, since = self.torch, self.clock()
        problem = other_profiler(torch)
        if problem:
            self.stop(problem)
            return
        options = {"use_kineto": True, "record_shapes": True, "with_flops": False}
        if torch.cuda.is_initialized():
            old = "use_cuda" in ops_autograd().profile.__init__.__kwdefaults__
            options.update({"use_cuda": True} if old else {"use_device": "cuda"})
        self.profile = ops_autograd().profile(**options)
        self.profile._prepare_trace()
        self.hush()  # the first one has set the level
        self.profile._start_trace()
        self.state = OPS_RUNS
        self.make_way()
        if not self.bare:
            hooks = torch.nn.modules.module
            self.hooks.append(hooks.register_module_forward_pre_hook(self.enter))
            self.hooks.append(hooks.register_module_forward_hook(self.leave))
        self.costs[0] = self.clock() - since
        self.mark()

    def make_way(self):
        """A profiler that the program begins itself, and a child, find none of ours."""
        import os

        for holder, name, why in ((ops_autograd(), "_prepare_profiler", "began torch.profiler"),
                                  (ops_autograd(), "_enable_profiler", "began torch.profiler"),
                                  (os, "fork", "started a process")):
            self.replace(holder, name, why)

    def replace(self, holder, name, why):
        from functools import wraps

        inner = getattr(holder, name, None)
        if inner is None:
            return

        @wraps(inner)
        def mine(*args, **kwargs):
            self.yield_to(why)
            return inner(*args, **kwargs)

        def restore():
            if getattr(holder, name, None) is mine:
                setattr(holder, name, inner)

        setattr(holder, name, mine)
        self.hooks.append(type("Undo", (), {"remove": staticmethod(restore)}))

    def yield_to(self, why):
        if self.state != OPS_RUNS:
            return
        self.note = "it ended early: the program " + why
        self.late = True
        if get_ident() == self.thread:
            self.end()

    def end(self):
        """Ends torch's profiler, in the thread where it began."""
        since, autograd = self.clock(), ops_autograd()
        self.unhook()
        for _, part in reversed(self.open.pop(self.thread, ())):
            part.__exit__(None, None, None)
        self.state = OPS_AFTER
        if self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()
        self.result = autograd._disable_profiler()
        getattr(autograd, "_run_on_profiler_stop", int)()
        self.costs[1] = self.clock() - since
        if self.late:
            self.stop()

    def stop(self, problem=""):
        self.problem = self.problem or problem
        if self.state == OPS_RUNS:
            self.end()
        self.state = OPS_OVER
        self.unhook()
        if self.wake.locked():
            self.wake.release()

    def unhook(self):
        while self.hooks:
            self.hooks.pop().remove()

    def enter(self, module, *_):
        """Modules are ranges of the profile, so that all times are of one clock."""
        try:
            if not self.late:
                self.enter_range(module)
            elif get_ident() == self.thread:
                self.end()
        except Exception as error:
            self.note = self.note or "some modules have no names: %s" % type(error).__name__

    def enter_range(self, module):
        ranges = self.open.setdefault(get_ident(), [])
        if id(module) not in self.named:
            self.name(module, ranges[0][0] if ranges else module)
        part = self.range("module %s (%s)" % (self.named[id(module)][1], caller_of_module()))
        part.__enter__()
        ranges.append((module, part))

    def leave(self, module, *_):
        """What an exception has left is still open."""
        ranges = self.open.get(get_ident(), ())
        if not any(each is module for each, _ in ranges):
            return
        while ranges:
            each, part = ranges.pop()
            part.__exit__(None, None, None)
            if each is module:
                return

    def range(self, text):
        fast = getattr(getattr(self.torch._C, "_profiler", None), "_RecordFunctionFast", None)
        return (fast or ops_autograd().record_function)(text)

    def name(self, module, root):
        """Holds the modules, so that an address cannot be another one's."""
        try:
            names = list(root.named_modules())[:MOST_MODULES]
            prefix = variable_of(root, 4)
        except Exception:
            names, prefix = [], ""
        for path, each in names:
            self.keep(each, prefix + "." + path if path else prefix)
        if id(module) not in self.named:
            self.keep(module, type(module).__name__)

    def keep(self, module, path):
        self.named.setdefault(id(module), (module, plain_text("%s: %s" % (path, type(module).__name__))))

    def wait(self, seconds):
        """Until it is over, or the time is, or the client has enough."""
        try:
            self.wait_until(self.clock() + seconds)
        except KeyboardInterrupt:
            pass
        self.late = True  # its thread ends it at the next call of a module, or step
        if self.state == OPS_RUNS:
            self.wait_until(self.clock() + OPS_PATIENCE)
        if self.state not in (OPS_RUNS, OPS_OVER):
            self.stop()

    def wait_until(self, end):
        while self.state != OPS_OVER and self.clock() < end:
            self.wake.acquire(True, 0.02)

    def put(self, job):
        """The numbers, a text, and what Kineto writes."""
        import os

        since, place = self.clock(), OpsFile()
        try:
            self.result.save(place.path)
            self.result = None
            self.costs[2] = self.clock() - since
            times = [self.before, self.after] + self.costs + self.steps
            send(job, 1, "%s\n%s\n" % (" ".join("%d" % (each * 1e9) for each in times), self.note))
            with open(place.path, "rb", OPS_PIECE) as file:
                while True:
                    piece = file.read(OPS_PIECE)
                    if not piece or not emit(job, 1, piece):
                        return
        finally:
            place.remove()


class OpsFile:
    """In memory where that is possible; Kineto makes a file of another name beside it in some versions."""

    def __init__(self):
        import os
        import tempfile

        self.folder = tempfile.mkdtemp(prefix="probing-", dir="/dev/shm" if os.access(
            "/dev/shm", os.W_OK | os.X_OK) else None)
        self.path = self.folder + "/trace.json"

    def remove(self):
        import shutil

        shutil.rmtree(self.folder, True)


def plain_text(text):
    """Some versions of Kineto write names as they are."""
    return text.translate(OPS_PLAIN).encode("ascii", "replace").decode()


def caller_of_module():
    """Where the program calls a module: FILE:LINE of the innermost frame that is not torch's."""
    frame = sys._getframe(3)
    while frame and str(frame.f_globals.get("__name__", "")).startswith("torch."):
        frame = frame.f_back
    if frame is None:
        return "?:0"
    return plain_text("%s:%d" % (frame.f_code.co_filename, frame.f_lineno or 0))


def ops_end():
    """On the main thread, which has called no module for long."""
    recording = ops_now[0]
    if recording and recording.late and recording.state == OPS_RUNS and get_ident() == recording.thread:
        recording.end()


def ops_request(job, source):
    head, _, rest = source.partition(b"\n")
    if head == b"ops-end":
        ops_end()
        return DONE
    if head == b"ops-rows":
        table, _, lines = rest.partition(b"\n")
        error = torch_op_rows(int(table), lines)
        if error:
            send(job, 2, "the rows have no place: %s\n" % posix.strerror(error))
        return RAISED if error else DONE
    count, seconds = rest.split(b"\n")
    problem = record_operators(job, int(count), float(seconds))
    if problem:
        send(job, 2, problem + "\n")
    return RAISED if problem else DONE


def record_operators(job, count, seconds):
    """Why there are none, or None."""
    torch, problem = whole_torch()
    problem = problem or ops_problem(torch)
    if problem:
        return problem
    recording = ops_now[0] = Operators(torch, count)
    recording.hush()
    try:
        return record_into(recording, torch, job, seconds)
    finally:
        if recording.level >= 0:
            torch_hush(recording.level)


def record_into(recording, torch, job, seconds):
    try:
        find_steps(torch, recording.stepping, recording.stepped, recording.undo)
        recording.wait(seconds)
    finally:
        if recording.state != OPS_RUNS:
            forget_operators()
    if recording.state == OPS_RUNS:
        return "late"
    if recording.problem:
        return recording.problem
    if not recording.steps:
        return recording.note + ", before a step was over" if recording.note else (
            "no optimizer made a step" if recording.state == OPS_NOTHING or recording.before < 0 else
            "no whole step was recorded in that time")
    recording.put(job)
    return None


def forget_operators():
    recording, ops_now[0] = ops_now[0], None
    while recording and recording.undo:
        recording.undo.pop()()
