# SPDX-License-Identifier: GPL-3.0-or-later
# Joins torch.py when the history of torch's GPU allocator is wanted: torch records it itself, for some
# seconds. What it has is sent as torch's tools expect it, a pickle of _snapshot(), behind a few lines about it.
HISTORY_EVENTS = 50000  # that torch keeps: some kilobytes each
HISTORY_LINES = 40  # of a GPU that are sent
HISTORY_BEFORE = "", "allocated before", 0
history_now = []  # the client that records


def history_problem(torch):
    """Why there can be no history."""
    if not torch.backends.cuda.is_built():
        return "this torch, %s, was built without CUDA" % torch.__version__
    if not torch.cuda.is_initialized():
        return "the program has not used a GPU so far"
    backend = getattr(torch.cuda, "get_allocator_backend", None)
    if backend and backend() != "native":
        return "its GPU memory is managed by %s, which has no history" % backend()
    if not hasattr(torch.cuda.memory, "_record_memory_history"):
        return "this torch, %s, records no history of its memory" % torch.__version__
    return "another client records it" if history_now else None


def history_on(memory):
    """Begins, as each version of torch has it: the word that ends it."""
    ways = ((("all",), {"context": "alloc", "stacks": "python", "max_entries": HISTORY_EVENTS}, None),
            ((True,), {"trace_alloc_max_entries": HISTORY_EVENTS, "trace_alloc_record_context": True}, False),
            ((True,), {}, False))
    for given, named, off in ways[:-1]:
        try:
            memory._record_memory_history(*given, **named)
            return off
        except TypeError:
            pass  # of another version
    memory._record_memory_history(*ways[-1][0])
    return ways[-1][2]


def history_request(job, source):
    seconds = float(source.split(b"\n")[1])
    torch, problem = whole_torch()
    problem = problem or history_problem(torch)
    if problem:
        send(job, 2, problem + "\n")
        return RAISED
    history_now.append(job)
    try:
        record_history(torch, job, seconds)
    finally:
        history_now.remove(job)
    return DONE


def record_history(torch, job, seconds):
    import time

    memory, is_on = torch.cuda.memory, getattr(torch._C, "_cuda_isHistoryEnabled", bool)
    own = not is_on()  # else the program records it, and goes on
    off = history_on(memory) if own else None
    try:
        try:
            wait_for_history(time.monotonic() + seconds, time)
        except KeyboardInterrupt:
            pass
        since = time.monotonic()
        found = memory._snapshot()
        took = time.monotonic() - since
    finally:
        if own:
            memory._record_memory_history(off)
    traces = found.get("device_traces", ()) if isinstance(found, dict) else ()
    full = own and max(map(len, traces), default=0) >= HISTORY_EVENTS
    send(job, 1, "%d %d %d %d\n" % (sum(map(len, traces)), full, took * 1e6, own))
    for device in range(len(traces)):
        send(job, 1, "".join("%s\n" % line for line in lines_at_peak(found, device)))
    send(job, 1, "\n")
    import pickle

    pickle.Pickler(HistoryFile(job), 2).dump(found)


def wait_for_history(end, time):
    wake = _thread.allocate_lock()
    wake.acquire()
    while time.monotonic() < end:
        wake.acquire(True, 0.02)


class HistoryFile:
    """Where a pickle goes: to the client."""

    def __init__(self, job):
        self.job = job

    def write(self, data):
        data = bytes(data)
        for at in range(0, len(data), PART):
            if not emit(self.job, 1, data[at:at + PART]):
                raise OSError("the client has left")
        return len(data)


def history_line(frames):
    """The innermost line that is not torch's: file, function, line."""
    for each in frames or ():
        if "/torch/" not in each["filename"] and each["filename"] != "??":
            return each["filename"], each["name"], each["line"]
    return "", "no line of Python: backward, or C++", 0


def lines_at_peak(found, device):
    """Of a GPU the most bytes that were allocated at once, then what had them: the bytes, blocks and place of each."""
    live, places, now = {}, {}, 0
    for segment in found["segments"]:
        if segment.get("device", 0) != device:
            continue
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                size = block.get("requested_size", block["size"])
                live[block.get("address", at)] = size, block.get("frames")
                now += size
            at += block["size"]
    events = [each for each in found["device_traces"][device] if each["action"] in ("alloc", "free_completed")]
    for each in events:
        if each["action"] == "alloc":
            places[each["addr"]] = each.get("frames")
        else:
            each["probing"] = places.pop(each["addr"], None)
    for address, (size, frames) in live.items():
        live[address] = size, places.get(address, frames or None)
    return peak_of(events, live, now, device)


def peak_of(events, live, now, device):
    """What is live at the end is known: from there back to when the most was."""
    peak, best = now, len(events)
    for number in range(len(events) - 1, -1, -1):
        each = events[number]
        now += each["size"] if each["action"] != "alloc" else -each["size"]
        if now > peak:
            peak, best = now, number
    for each in reversed(events[best:]):
        if each["action"] == "alloc":
            live.pop(each["addr"], None)
        else:
            live[each["addr"]] = each["size"], each["probing"]
    for each in events:
        each.pop("probing", None)
    sums = {}
    for size, frames in live.values():
        place = HISTORY_BEFORE if frames is None else history_line(frames)
        total, count = sums.get(place, (0, 0))
        sums[place] = total + size, count + 1
    yield "%d\t%d\t%d" % (device, peak, len(live))
    for place, (size, count) in sorted(sums.items(), key=lambda each: -each[1][0])[:HISTORY_LINES]:
        yield "\t%d\t%d\t%d\t%s\t%s" % (size, count, place[2], plain_line(place[1]), plain_line(place[0]))


def plain_line(text):
    return "".join(letter if letter >= " " else "?" for letter in text)
