# SPDX-License-Identifier: GPL-3.0-or-later
"""sandboxed.py LIBRARY SHARED note MAKERS|answer NUMBER ACTION [ARGUMENT =|!|<|>|&|^ VALUE]
[torch|main|other|user USER]: shuts itself into a filter of system calls with programs/sandbox.c, and then makes
no call of its own any more."""
import ctypes
import os
import sys
import threading

del sys.path[0]  # other programs of the tests are called as modules are
sandbox = ctypes.CDLL(sys.argv[1])
sandbox.sandbox_open.restype = ctypes.POINTER(ctypes.c_int64)
shared = sandbox.sandbox_open(sys.argv[2].encode())
if sys.argv[-1] == "torch":
    import torch

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.ones(2, 2)
if sys.argv[-2] == "user":
    user = int(sys.argv[-1])
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE


def step():
    if sys.argv[-1] == "torch":
        optimizer.zero_grad()
        model(data).sum().backward()
        optimizer.step()
    shared[0] += 1


def work():
    while not shared[1]:
        step()


def shut_in():
    if sys.argv[3] == "note":
        error = sandbox.sandbox_note(int(sys.argv[4]))
    else:
        argument, comparison, value = sys.argv[6:9] if len(sys.argv) > 8 else (0, "\0", 0)
        error = sandbox.sandbox_answer(int(sys.argv[4]), ctypes.c_uint32(int(sys.argv[5])),
                                       int(argument), ord(comparison), ctypes.c_uint32(int(value)))
    if error:
        raise OSError(-error, "no filter")
    work()


def rest():
    threading.Event().wait()


step()
sys.stdout.write("ready\n")
sys.stdout.flush()
if sys.argv[-1] in ("main", "other"):
    # Only one of two threads is under the filter.
    threading.Thread(target=rest if sys.argv[-1] == "main" else shut_in).start()
if sys.argv[-1] != "other":
    shut_in()
else:
    work()
if shared[1] == 2:
    raise ValueError("not caught")
ctypes.string_at(0)
