# SPDX-License-Identifier: GPL-3.0-or-later
# Joins torch.py: rows of python.comm_collective, by wrappers around the methods of c10d's process
# groups, so that it does not matter how the program calls them. The agent adds:
#   torch_communicating(begins)        around an operation, and a wait for one
#   torch_comm(record, operation, group, dtype, size, rank, seq, bytes, src, dst, nanoseconds)
# What fails in a wrapper costs a row; the program's call is made, and raises what it raises.
OPERATIONS = ("allreduce", "allreduce_coalesced", "broadcast", "reduce", "allgather",
              "allgather_coalesced", "_allgather_base", "allgather_into_tensor_coalesced", "gather",
              "scatter", "reduce_scatter", "_reduce_scatter_base",
              "reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base", "barrier",
              "monitored_barrier", "send", "recv", "recv_anysource")
MOST_PENDING = 256
comm_pending = {}  # {id(work): (weak reference to it, when it began, its row)}
comm_undo = []
comm_home = [0]  # the process: a child after fork() has these wrappers, and may get its own beside them


def comm_of(group, operation, arguments):
    """The row of a call: (operation, group, dtype, size, rank, seq, bytes, src, dst)."""
    rank = group.rank()
    try:
        seq = group._get_sequence_number_for_group()
    except Exception:
        seq = None
    size, dtype = bytes_of(arguments[0] if arguments else (), 0)
    src, dst = ends_of(operation, arguments, rank)
    return (operation.encode(), group_name(group), dtype and str(dtype).encode(), group.size(), rank, seq,
            size, src, dst)


def group_name(group):
    c10d = sys.modules["torch.distributed.distributed_c10d"]
    names = getattr(c10d, "_pg_names", None)
    if names is None:
        names = c10d._world.pg_names
    name = names.get(group)
    return None if name is None else str(name).encode("utf-8", "backslashreplace")


def bytes_of(values, depth):
    """Of the tensors of its first argument, and their type."""
    torch = sys.modules["torch"]
    if isinstance(values, torch.Tensor):
        return values.nelement() * values.element_size(), values.dtype
    size, dtype = 0, None
    if depth < 3 and isinstance(values, (list, tuple)):
        for each in values:
            more, kind = bytes_of(each, depth + 1)
            size, dtype = size + more, dtype or kind
    return size, dtype


def ends_of(operation, arguments, rank):
    """(source, destination) as ranks of the group; None: all."""
    other = arguments[1] if len(arguments) > 1 else None
    root = getattr(other, "rootRank", None)
    if operation == "send":
        return rank, other if isinstance(other, int) else None
    if operation == "recv":
        return other if isinstance(other, int) else None, rank
    if operation == "recv_anysource":
        return None, rank
    if operation in ("broadcast", "scatter"):
        return root, rank
    return rank, root if operation in ("reduce", "gather") else None


def around_operation(inner, operation, calls):
    from functools import wraps

    @wraps(inner)
    def method(group, *args, **kwargs):
        row = calls[0](group, operation, args)
        calls[4](1)
        try:
            work = inner(group, *args, **kwargs)
        finally:
            calls[4](0)
        calls[1](row, work)
        return work

    return method


def comm_begin(group, operation, arguments):
    import time

    if posix.getpid() != comm_home[0]:
        return None
    try:
        now = time.monotonic()
        row = comm_of(group, operation, arguments)
        torch_comm(b"begin", *(row + (None,)))
        return now, row
    except Exception:
        return None


def comm_began(begun, work):
    """The call has returned: of what it left to be waited for, the end is seen later."""
    import _weakref

    try:
        if begun is None:
            return
        if work is None:
            comm_ended(*begun)
            return
        if len(comm_pending) >= MOST_PENDING:
            comm_pending.clear()
        comm_pending[id(work)] = (_weakref.ref(work),) + begun
    except Exception:
        pass


def comm_ended(began, row):
    import time

    torch_comm(b"end", *(row + (int((time.monotonic() - began) * 1e9),)))


def around_wait(inner, calls):
    from functools import wraps

    @wraps(inner)
    def wait(work, *args, **kwargs):
        calls[4](1)
        try:
            result = inner(work, *args, **kwargs)
        finally:
            calls[4](0)
        calls[2](work)
        return result

    return wait


def comm_waited(work):
    try:
        ref, began, row = comm_pending.pop(id(work), (None, 0, None))
        if ref is not None and ref() is work:
            comm_ended(began, row)
    except Exception:
        pass


def around_prepare(inner, calls):
    """DDP reduces gradients in C++; a rank arrives there when its backward begins."""
    from functools import wraps

    @wraps(inner)
    def prepare_for_backward(reducer, *args, **kwargs):
        calls[3]()
        return inner(reducer, *args, **kwargs)

    return prepare_for_backward


def comm_prepared():
    if posix.getpid() != comm_home[0]:
        return
    try:
        model = self_of(sys._getframe(2))
        group = getattr(model, "process_group", None)
        if group is not None:
            torch_comm(b"begin", *(comm_of(group, "ddp_backward", ()) + (None,)))
    except Exception:
        pass


def wrap_method(kind, name, wrapper):
    """Replaces a method of a class of C++; taken back by comm_off()."""
    inner = kind.__dict__.get(name)
    if inner is None:
        return
    mine = wrapper(inner)
    setattr(kind, name, mine)

    def unwrap():
        if kind.__dict__.get(name) is mine:
            setattr(kind, name, inner)

    comm_undo.append(unwrap)


def comm_on():
    """Wraps, if torch.distributed is there."""
    c10d = sys.modules.get("torch._C._distributed_c10d")
    if comm_undo or c10d is None or "torch.distributed.distributed_c10d" not in sys.modules:
        return
    comm_home[0] = posix.getpid()
    calls = [comm_begin, comm_began, comm_waited, comm_prepared, torch_communicating]
    nothing = lambda *_: None  # noqa: E731: it must not need this module
    comm_undo.append(lambda: calls.__setitem__(slice(None), [nothing] * 5))
    for name in OPERATIONS:
        wrap_method(c10d.ProcessGroup, name,
                    lambda inner, name=name: around_operation(inner, name, calls))
    wrap_method(c10d.Work, "wait", lambda inner: around_wait(inner, calls))
    wrap_method(c10d.Reducer, "prepare_for_backward", lambda inner: around_prepare(inner, calls))


def comm_off():
    while comm_undo:
        comm_undo.pop()()
    comm_pending.clear()
