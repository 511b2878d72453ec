# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for torch's GPU allocator, whose history it has made up. Lines on stdin: "calls" prints as JSON what its
recorder was told so far; "snapshot" what it gives.

Arguments: "itself": the program records already; "other": another allocator is used; "old": a recorder of torch 2.0."""
import json
import sys

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
MIB, BASE = 1 << 20, 0x7f0000000000
calls = []


def frame(line, name="forward", file="/src/model.py"):
    return {"filename": file, "name": name, "line": line}


IN_TORCH = frame(114, file="/usr/lib/python3/dist-packages/torch/nn/modules/linear.py")
LAYER, HEAD = [IN_TORCH, frame(31), frame(80)], [frame(55, "loss\nof")]
# The most is allocated at once after the fourth: 40 of before, 20, 8, and 16 in the backward pass.
EVENTS = [("alloc", 40, 20, LAYER), ("alloc", 60, 8, HEAD), ("alloc", 68, 16, []), ("free_requested", 40, 20, []),
          ("free_completed", 40, 20, []), ("free_completed", 0, 40, []), ("alloc", 90, 2, HEAD)]


def block(at, size, frames=()):
    return {"size": size * MIB, "requested_size": size * MIB, "address": BASE + at * MIB,
            "state": "active_allocated" if frames is not None else "inactive", "frames": list(frames or ())}


def snapshot():
    blocks = [block(0, 60, None), block(60, 8, HEAD), block(68, 16), block(84, 6, None), block(90, 2, HEAD), block(92, 8, None)]
    return {"segments": [{
        "device": 0, "address": BASE, "total_size": 100 * MIB, "stream": 0, "segment_type": "large",
        "segment_pool_id": (0, 0), "allocated_size": 26 * MIB, "active_size": 26 * MIB, "requested_size": 26 * MIB,
        "is_expandable": False, "frames": [], "blocks": blocks}],
        "device_traces": [[{"action": action, "addr": BASE + at * MIB, "size": size * MIB, "stream": 0, "time_us": 1000 + n,
                            "frames": frames} for n, (action, at, size, frames) in enumerate(EVENTS)]],
        "allocator_settings": {}, "external_annotations": []}


def record(enabled="all", context="all", stacks="all", max_entries=None):
    calls.append([enabled, context, stacks, max_entries])


def record_old(enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False):
    calls.append([enabled, record_context, trace_alloc_max_entries, trace_alloc_record_context])


torch.backends.cuda.is_built = torch.cuda.is_initialized = lambda: True
torch.cuda.get_allocator_backend = lambda: "cudaMallocAsync" if MODE == "other" else "native"
torch.cuda.memory._record_memory_history = record_old if MODE == "old" else record
torch.cuda.memory._snapshot = snapshot
torch._C._cuda_isHistoryEnabled = lambda: MODE == "itself"
print("ready", flush=True)
for asked in sys.stdin:
    print(json.dumps(calls if asked == "calls\n" else snapshot()), flush=True)
