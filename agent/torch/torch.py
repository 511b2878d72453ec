# SPDX-License-Identifier: GPL-3.0-or-later
# Joins bootstrap.py when steps of torch are first recorded: installs and removes hooks, and names
# modules. What runs in each step is C (torch.c). The agent adds:
#   torch_begin(helpers, world_size)   0, or the errno value that says why there can be no rings
#   torch_rate(ppm, left[, first])     the share of steps to sample; how many are sampled soon, or at once
#   torch_configured()                 that share, as the settings say it
#   torch_watched()                    what is watched at each step
#   torch_count()                      steps that were sampled
#   torch_stop()                       hooks that are left do nothing from now on
#   torch_module(path, class)          a number for these bytes
#   torch_before(optimizer, …), torch_after(optimizer, …)      around an optimizer's step
#   torch_pre(module, inputs), torch_post(module, inputs, output)   around a module's call
#   torch_grad_begin(call), torch_grad_end(call), torch_pass_end(call)
#   torch_loading(begins), torch_pass(begins)   around a wait for a batch, and a backward pass
#   torch_root(begins), torch_saving(begins)    around a call of an outermost module, and torch.save()
#   torch_rooted(are)                  whether all outermost modules do that
#   torch_log(epoch, loss, metrics)    a row of training_logs for the step that has ended; None: not known
#   torch_nan()                        whether probing.torch.nan is on
#   torch_gpu_waits()                  whether times of the GPU are still to come
# Nothing here raises into the program: C takes what is raised in a helper for "no".
MOST_MODULES = 65000
MOST_TENSORS = 8  # of a call, whose gradients are watched
MOST_FRAMES = 60
STEP_SECONDS = 2  # that are waited for a step to end; a hook that does nothing stays else
NAN_PPM = 10000  # of steps whose outputs are checked, if none are timed
MOST_ALIKE = 32  # modules of the class of an outermost one, in it
# What is wrapped: module, class, function, and what to call around it. Where torch compiles, the first two are not wrapped.
TOLD_PARTS = (("torch.autograd", None, "backward", "torch_pass"),
              ("torch", None, "compile", "leave_roots"),
              ("torch.utils.data.dataloader", "_BaseDataLoaderIter", "__next__", "torch_loading"),
              ("torch", None, "save", "torch_saving"),
              ("torch.distributed.checkpoint", None, "save", "torch_saving"),
              ("transformers.modeling_utils", None, "safe_save_file", "torch_saving"),
              ("safetensors.torch", None, "save_file", "torch_saving"))
# Calls by which programs log values: module, class, function, and our function that gets the same arguments.
TOLD_METRICS = (("logging", "Logger", "handle", "see_record"),
                ("torch.utils.tensorboard.writer", "SummaryWriter", "add_scalar", "see_scalar"),
                ("torch.utils.tensorboard.writer", "SummaryWriter", "add_scalars", "see_scalars"),
                ("tensorboardX.writer", "SummaryWriter", "add_scalar", "see_scalar"),
                ("tensorboardX.writer", "SummaryWriter", "add_scalars", "see_scalars"),
                ("tqdm.std", "tqdm", "set_postfix", "see_postfix"),
                ("tqdm.std", "tqdm", "set_postfix_str", "see_text"),
                ("tqdm.std", "tqdm", "set_description", "see_text"),
                ("tqdm.std", "tqdm", "set_description_str", "see_text"),
                # wandb.init() has bound log(), which calls this.
                ("wandb.sdk.wandb_run", "Run", "_log", "see_values"),
                ("transformers.trainer", "Trainer", "log", "see_values"),
                ("lightning.pytorch.core.module", "LightningModule", "log", "see_pair"),
                ("lightning.fabric.fabric", "Fabric", "log", "see_pair"),
                ("lightning.fabric.loggers.csv_logs", "CSVLogger", "log_metrics", "see_values"),
                ("pytorch_lightning.core.module", "LightningModule", "log", "see_pair"),
                ("lightning_fabric.loggers.csv_logs", "CSVLogger", "log_metrics", "see_values"))
MOST_HOLDERS = 4  # objects that have one another as attributes, and the innermost has the model

torch_undo = []  # functions that take back what finds steps; empty: it is off
torch_handles = []  # of the step that is sampled
torch_watchers = []  # functions that the hooks of tensors call
torch_parts = {}  # {what is wrapped in every step: its Around}
torch_roots = []  # classes of outermost modules, whose calls are timed
torch_blind = [False]  # an outermost module cannot be told of
torch_leaves = []  # handles of hooks on leaves, which would outlive the step
torch_known = {}  # {id(module): number}
torch_refs = {}  # {id(module): weak reference, which forgets it}
torch_numbers = {}  # {(path, class): number}
torch_cut = set()  # {id(model)} of those with more modules than are named, in the step that is sampled
torch_problem = [""]  # why the last chosen step was not sampled
torch_exact = [0]  # clients that wait for sampled steps
torch_later = []  # the finder that waits for the import of torch


def whole_torch():
    """(torch, None), or (None, why it cannot be used yet)."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None, "torch is not imported in this process"
    spec = getattr(torch, "__spec__", None)
    if getattr(spec, "_initializing", False):
        return None, "torch is being imported"
    try:
        torch.optim.Optimizer, torch.nn.modules.module.register_module_forward_pre_hook
    except AttributeError:
        return None, "this torch has no hooks of modules, or is no torch"
    return torch, None


def torch_busy(torch):
    """Why modules cannot be hooked in this step."""
    if torch._C._get_tracing_state() is not None:
        return "torch is tracing a module"
    compiled = sys.modules.get("torch._dynamo.convert_frame")
    if getattr(compiled, "FRAME_COUNTER", 0):
        return "torch.compile is used: only the times of steps are recorded"
    cuda = torch.cuda
    if cuda.is_initialized() and cuda.is_current_stream_capturing():
        return "a CUDA graph is being captured"
    return None


def gpu_memory():
    stats = sys.modules["torch"].cuda.memory_stats_as_nested_dict()
    return (stats["allocated_bytes"]["all"]["current"], stats["allocated_bytes"]["all"]["peak"],
            stats["reserved_bytes"]["all"]["current"])


def install_hooks():
    """Begins a sampled step: None if there can be no hooks."""
    torch = sys.modules["torch"]
    torch_problem[0] = torch_busy(torch) or ""
    torch_cut.clear()
    if torch_problem[0]:
        return None
    hooks = torch.nn.modules.module
    try:
        torch_handles.append(hooks.register_module_forward_pre_hook(torch_pre))
        torch_handles.append(hooks.register_module_forward_hook(torch_post))
        watch_parts()
    except BaseException:
        remove_hooks()
        raise
    return gpu_memory if torch.cuda.is_initialized() else True


class Around:
    """A function of torch that tells when it is called and when it has ended."""

    def __init__(self, module, kind, name, tell, look=None):
        holder = sys.modules.get(module)
        self.holder, self.name = getattr(holder, kind, None) if kind else holder, name
        self.inner = inner = getattr(self.holder, "__dict__", {}).get(name)
        from functools import wraps

        @wraps(inner or tell)
        def mine(*args, **kwargs):
            tell(1)
            try:
                if look:
                    look(args, kwargs)
                return inner(*args, **kwargs)
            finally:
                tell(0)

        self.mine = mine
        if inner:
            setattr(self.holder, name, mine)

    def remove(self):
        if self.inner and self.holder.__dict__.get(self.name) is self.mine:
            setattr(self.holder, self.name, self.inner)


def watch_parts():
    """Once for all steps: each change of a class costs later calls of its methods."""
    for where in TOLD_PARTS:
        if where not in torch_parts and where[0] in sys.modules:
            torch_parts[where] = Around(*where[:3], tell=globals()[where[3]],
                                        look=look_at_loss if where[2] == "backward" else None)
    for where in TOLD_METRICS:
        if where not in torch_parts and where[0] in sys.modules and torch_configured():
            torch_parts[where] = Around(*where[:3], tell=nothing, look=metrics_seen(where[3]))
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    # torch._dynamo.disable(), which DDP and trainers use, leaves a None there.
    if any(callable(each) for each in list(getattr(dynamo, "cached_backends", {}).values())):
        leave_roots()


def leave_roots(_=1):
    """What is compiled must not meet anything of ours; only what is around it is timed."""
    torch_blind[0] = True
    torch_rooted(0)
    while torch_roots:
        torch_roots.pop().remove()
    for where in TOLD_PARTS[:2]:
        if where in torch_parts:
            torch_parts[where].remove()


class RootCall:
    """Replaces nn.Module.__call__ in a class, and times the calls. The modules are not changed, since programs copy
    and pickle them. Where the class is pickled too, nn.Module.__call__ is written in its place."""

    def __init__(self, kind):
        base, tell = sys.modules["torch"].nn.Module, torch_root

        def mine(*args, **kwargs):
            tell(1)
            try:
                return base.__call__(*args, **kwargs)
            finally:
                tell(0)

        self.kind, self.base, self.mine = kind, base, mine
        kind.__call__ = self

    def __get__(self, module, kind=None):
        return self if module is None else self.mine.__get__(module, kind)

    def __call__(self, *args, **kwargs):
        return self.mine(*args, **kwargs)

    def __reduce__(self):
        return getattr, (self.base, "__call__")

    def remove(self):
        if self.kind.__dict__.get("__call__") is self:
            del self.kind.__call__


def watch_root(module):
    """Each outermost call of a sampled step leads here."""
    if torch_blind[0]:
        return
    base = sys.modules["torch"].nn.Module
    # What is called by itself in an evaluation may be what DDP has within.
    for each in (module, module._modules.get("module")):
        kind = type(each)
        if each is None or isinstance(kind.__call__, RootCall):
            continue
        alike = sum(type(inner) is kind for inner in module.modules())
        if kind is base or kind.__call__ is not base.__call__ or alike > MOST_ALIKE:
            leave_roots()
            return
        torch_roots.append(RootCall(kind))
    torch_rooted(1)


def remove_hooks():
    for handles in (torch_handles, torch_leaves):
        while handles:
            handles.pop().remove()
    return True


def variable_of(root, above=2):
    """What the program calls the model, as torch.modules does: by a module's variable rather than a
    function's, and by that of an outer function rather than of one that it calls."""
    frames, frame = [], sys._getframe(above)
    while frame and len(frames) < MOST_FRAMES:
        frames.insert(0, frame)
        frame = frame.f_back
    frames = [frame for frame in frames
              if not str(frame.f_globals.get("__name__", "")).startswith("torch.")]
    for look in (name_in_module, name_in_function, name_of_self):
        found = name_by(look, frames, root, MOST_HOLDERS)
        if found:
            return found
    return type(root).__name__


def name_by(look, frames, wanted, most):
    """The name of the variable that holds it; else of the attribute of an object whose method runs."""
    for frame in frames:
        found = look(frame, wanted)
        if found:
            return found
    for frame in frames:
        holder = self_of(frame)
        attributes = getattr(holder, "__dict__", {})
        found = most and (name_in(attributes, wanted) or name_in(attributes.get("_modules"), wanted))
        above = found and name_by(look, frames, holder, most - 1)
        if above:
            return above + "." + found
    return None


def self_of(frame):
    return read_locals(frame, lambda own: own.get("self"))


def name_in_module(frame, wanted):
    found, module = name_in(frame.f_globals, wanted), str(frame.f_globals.get("__name__", ""))
    return module + "." + found if found and module != "__main__" else found


def name_in_function(frame, wanted):
    return read_locals(frame, lambda own: name_in(own, wanted))


def name_of_self(frame, wanted):
    return "self" if self_of(frame) is wanted else None


def name_in(names, root):
    if type(names) is not dict and not hasattr(names, "items"):
        return None
    for name, value in list(names.items()):
        if value is root and type(name) is str and name != "self" and not name.startswith("_"):
            return name
    return None


def name_module(module, root):
    """Names all modules of a model, when one of them is met that has no name: its number."""
    try:
        # Each module that has no name leads here, and a list of all takes long.
        names = [] if id(root) in torch_cut else list(root.named_modules())
        prefix = variable_of(root) if names else ""
        for path, each in names[:MOST_MODULES]:
            note_module(each, prefix + "." + path if path else prefix)
        if len(names) > MOST_MODULES:
            torch_cut.add(id(root))
    except Exception:
        pass  # named_modules() may be the program's own
    if id(module) not in torch_known:
        note_module(module, type(module).__name__)
    return torch_known[id(module)]


def note_module(module, path):
    import _weakref

    key, kind = id(module), type(module).__name__
    if key in torch_known:
        return
    known, refs = torch_known, torch_refs

    def forget(_):
        known.pop(key, None)
        refs.pop(key, None)

    number = torch_numbers.get((path, kind))
    if number is None:
        number = torch_numbers[path, kind] = torch_module(
            path.encode("utf-8", "backslashreplace"), kind.encode("utf-8", "backslashreplace"))
    refs[key] = _weakref.ref(module, forget)
    known[key] = number


def tensors_of(values, found, depth=0):
    """Each tensor once; instances of subclasses are left out, since their code might run."""
    torch = sys.modules["torch"]
    if type(values) in (torch.Tensor, torch.nn.Parameter):
        if len(found) < MOST_TENSORS and not any(each is values for each in found):
            found.append(values)
    elif depth < 3:
        if isinstance(values, dict):
            values = list(values.values())
        if isinstance(values, (tuple, list)):
            for each in values[:MOST_TENSORS]:
                tensors_of(each, found, depth + 1)
    return found


def none(_):
    """What hooks that are left call. A hook that gives anything would replace the gradient."""


def watcher(watchers, which, call):
    """A hook for a tensor. Graphs may keep it, so it does not hold the function of C by itself."""
    return lambda *_: watchers[which](call)


def watch_inputs(call, inputs):
    """How many inputs will get a gradient; 0: none needs one; -1: it has no tensors that are seen."""
    tensors, count = tensors_of(inputs, []), 0
    for each in tensors:
        if each.requires_grad:
            handle = each.register_hook(watcher(torch_watchers, 1, call))
            count += 1
            if each.is_leaf:
                torch_leaves.append(handle)
    return count if tensors else -1


def watch_outputs(call, output):
    for each in tensors_of(output, []):
        if each.grad_fn is not None:
            each.register_hook(watcher(torch_watchers, 0, call))
    return True


def watch_end(call):
    engine = sys.modules["torch"].autograd.Variable._execution_engine
    engine.queue_callback(watcher(torch_watchers, 2, call))
    return True


def steps_of(optimizer):
    """How many it has made. A count on a GPU is not read, since that would wait for the GPU."""
    for state in list(optimizer.state.values())[:1]:
        step = state.get("step") if isinstance(state, dict) else None
        if getattr(step, "is_cuda", False):
            break
        if step is not None:
            return int(step)
    return int(getattr(optimizer, "_step_count", -1))


def torch_share():
    """Of the steps to sample, in millionths."""
    return torch_configured() or (NAN_PPM if torch_nan() else 0)


def look_at_loss(args, kwargs):
    if torch_nan():
        load(16, "check_loss")(args, kwargs)


def check_output(module, inputs, output):
    return load(16, "check_module")(module, inputs, output)


def metrics_seen(name):
    def look(args, kwargs):
        try:
            load(17, name)(args, kwargs)
        except Exception:
            pass

    return look


def log_step(_):
    return load(17, "log_values")()


def watch_step(step):
    load(3, "answer")
    load(7, "clean")
    return load(11, "watch_values")(step)


def around(inner, calls):
    """A step() that calls ours, for a torch without hooks of optimizers."""
    from functools import wraps

    @wraps(inner)
    def step(self, *args, **kwargs):
        before, after = calls
        before(self)
        result = inner(self, *args, **kwargs)
        after(self)
        return result

    return step


def cell_of(step):
    """What torch's own wrapper around a step() calls."""
    code = getattr(step, "__code__", None)
    if code is None or not getattr(step, "hooked", False) or "func" not in code.co_freevars:
        return None
    return step.__closure__[code.co_freevars.index("func")]


def wrap_class(kind, calls, undo):
    inner = kind.__dict__.get("step")
    cell = cell_of(inner)
    if cell is not None:
        # Schedulers hold torch's wrapper, which is why it stays.
        inner = cell.cell_contents
        mine = cell.cell_contents = around(inner, calls)
    elif callable(inner):
        mine = around(inner, calls)
        kind.step = mine
    else:
        return

    def unwrap():
        now = kind.__dict__.get("step")
        within = cell_of(now)
        if within is not None and within.cell_contents is mine:
            within.cell_contents = inner
        elif now is mine:
            kind.step = inner

    undo.append(unwrap)


def subclasses(kind):
    for each in type.__subclasses__(kind):
        yield each
        for inner in subclasses(each):
            yield inner


def nothing(*_):
    """In place of a hook that cannot be removed yet."""


def out_of_steps(torch, act):
    """Torch iterates over its tables of these hooks while it calls them: if one changes meanwhile, the
    program's step() raises. So they are changed while no thread is in a step. False: some always is."""
    import time

    file, end = torch.optim.Optimizer.profile_hook_step.__code__.co_filename, time.monotonic() + STEP_SECONDS
    while time.monotonic() < end:
        time.sleep(0.0005)  # After that no other thread gets the GIL for some milliseconds.
        if not any(in_step(frame, file) for frame in current_frames().values()):
            act()
            return True
    return False


def in_step(frame, file):
    while frame:
        if frame.f_code.co_filename == file and frame.f_code.co_name == "wrapper":
            return True
        frame = frame.f_back
    return False


def remove_step_hooks(torch, handles):
    for each in handles:
        hooks = each.hooks_dict_ref()
        if hooks is not None and each.id in hooks:
            hooks[each.id] = nothing  # which is no change of the table
    out_of_steps(torch, lambda: [each.remove() for each in handles])


def find_steps(torch, before, after, undo):
    """Has these called around each step of an optimizer, until the functions in `undo` were called."""
    optim = sys.modules[torch.optim.Optimizer.__module__]
    if hasattr(optim, "register_optimizer_step_post_hook"):
        handles = []

        def register():
            handles.append(optim.register_optimizer_step_pre_hook(before))
            handles.append(optim.register_optimizer_step_post_hook(after))

        if not any(getattr(optim, "_global_optimizer_%s_hooks" % each, True) for each in ("pre", "post")):
            register()
        elif not out_of_steps(torch, register):
            raise RuntimeError("a step of an optimizer takes longer than %d s" % STEP_SECONDS)
        undo.append(lambda: remove_step_hooks(torch, handles))
        return
    calls = [before, after]
    undo.append(lambda: calls.__setitem__(slice(None), [gone, gone]))
    for kind in set(subclasses(torch.optim.Optimizer)):
        wrap_class(kind, calls, undo)


def torch_on():
    """Begins to find steps. Why it cannot, or None."""
    if torch_undo:
        return None
    torch_watchers[:] = [torch_grad_begin, torch_grad_end, torch_pass_end]
    torch, problem = whole_torch()
    if problem:
        return problem
    if not getattr(sys, "_is_gil_enabled", bool)() and hasattr(sys, "_is_gil_enabled"):
        return "this Python runs without a GIL, where steps of torch are not recorded yet"
    import os

    helpers = {"watch": watch_step, "begin": install_hooks, "end": remove_hooks, "name": name_module,
               "inputs": watch_inputs, "outputs": watch_outputs, "at_end": watch_end,
               "step_of": steps_of, "known": torch_known,
               "device": getattr(torch._C, "_cuda_getDevice", None),
               "stream": getattr(torch._C, "_cuda_getCurrentRawStream", None),
               "gradients": torch.is_grad_enabled, "outermost": watch_root, "check": check_output,
               "log": log_step}
    try:
        world = int(os.environ.get("WORLD_SIZE", -1))
    except ValueError:
        world = -1
    error = torch_begin(helpers, world if world >= 0 else torch_world(torch))
    if error:
        return "its rows have no place: %s" % os.strerror(error)
    try:
        find_steps(torch, torch_before, torch_after, torch_undo)
        torch_blind[0] = False
        watch_parts()
    except BaseException:
        torch_off()
        raise
    return None


def torch_world(torch):
    distributed = getattr(torch, "distributed", None)
    try:
        return distributed.get_world_size() if distributed.is_initialized() else -1
    except Exception:
        return -1


def torch_off():
    while torch_undo:
        torch_undo.pop()()
    leave_roots()
    while torch_parts:
        torch_parts.popitem()[1].remove()
    torch_stop()
    torch_watchers[:] = [none] * 3
    remove_hooks()
    torch_known.clear()
    torch_refs.clear()
    globals().get("log_codes", {}).clear()


class Later:
    """Waits for the program to import torch, and begins then."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        stop_waiting()
        import importlib.util

        spec = importlib.util.find_spec("torch")
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "exec_module"):
            inner = loader.exec_module

            def exec_module(module):
                del loader.exec_module
                inner(module)
                module.__spec__._initializing = False
                try:
                    torch_apply()
                except Exception:
                    pass

            loader.exec_module = exec_module
        return spec


def stop_waiting():
    for each in torch_later:
        if each in sys.meta_path:
            sys.meta_path.remove(each)
    del torch_later[:]


def torch_apply():
    """Does what probing.torch.profiling says: what came of it, in words."""
    ppm = torch_share()
    if not ppm and not torch_exact[0] and not torch_watched():
        forget_torch()
        return "no steps of torch are timed"
    problem = torch_on()
    if problem and "torch" not in sys.modules:
        if not torch_later:
            torch_later.append(Later())
            sys.meta_path.insert(0, torch_later[0])
        return problem + ": its steps are timed once it is"
    if problem:
        return problem
    if not torch_exact[0]:
        torch_rate(ppm, 0)
    if ppm:
        load(10, "comm_on")()
    return "steps of torch are timed" if ppm else "steps of torch are watched"


def torch_request(job, source):
    """A request, in lines: "apply", or "begin", steps to sample at once, or "exact", steps, seconds; or of
    ops.py or history.py."""
    if source.startswith(b"ops"):
        return load(15, "ops_request")(job, source)
    if source.startswith(b"history"):
        return load(18, "history_request")(job, source)
    words = source.decode().split("\n")
    if words[0] in ("apply", "begin"):
        send(job, 1, torch_apply() + "\n")
        if words[0] == "begin" and not torch_exact[0] and torch_configured():
            torch_rate(torch_configured(), 0, int(words[1]))
        return DONE
    return sample_steps(job, int(words[1]), float(words[2]))


def sample_steps(job, count, seconds):
    """Samples half of the steps until there were so many: sends how many, and what was in the way."""
    import time

    problem = torch_on()
    if problem:
        send(job, 2, problem + "\n")
        return RAISED
    torch_exact[0] += 1
    load(10, "comm_on")()
    wake = _thread.allocate_lock()
    wake.acquire()
    first, end = torch_count(), time.monotonic() + seconds
    torch_problem[0] = ""
    try:
        while torch_count() - first < count and time.monotonic() < end and not torch_problem[0]:
            # Again and again: another client may have wanted fewer, and be done.
            torch_rate(torch_share(), count - (torch_count() - first))
            wake.acquire(True, 0.02)
        torch_rate(torch_share(), 0)
        while torch_gpu_waits() and time.monotonic() < end and not torch_problem[0]:
            wake.acquire(True, 0.02)
    finally:
        torch_exact[0] -= 1
        torch_rate(torch_share(), 0)
        done = torch_count() - first
        if not torch_exact[0] and not torch_share():
            comm_off()
        if not torch_exact[0] and not torch_share() and not torch_watched():
            torch_off()
    if torch_problem[0]:
        send(job, 2, torch_problem[0] + "\n")
        return RAISED
    send(job, 1, "%d\n" % done)
    return DONE


def forget_torch():
    stop_waiting()
    torch_off()
    if "comm_off" in globals():
        comm_off()
