# SPDX-License-Identifier: GPL-3.0-or-later
"""Data loaders of torch: batches asked for and received, and what each worker does."""

import probing

p = probing.current()
MODULE = "torch.utils.data.dataloader."


def doing(pid):
    try:
        with probing.attach(pid) as worker:
            frames = worker.threads()[0].frames
            return "in %s %s:%s" % (frames[0].func, frames[0].file, frames[0].line)
    except (probing.Error, IndexError) as error:
        return "cannot be read: %s" % error


count = 0
for loader in p.find(MODULE + "_MultiProcessingDataLoaderIter"):
    count += 1
    print("loader of %s: %d batches asked for, %d received, %d not yet taken%s" % (
        loader._dataset.type.name, loader._send_idx, loader._rcvd_idx,
        loader._tasks_outstanding, ", shut down" if loader._shutdown else ""))
    for number, worker in enumerate(loader._workers):
        pid = int(worker._popen.pid)
        print("  worker %d, pid %d %s" % (number, pid, doing(pid)))
for loader in p.find(MODULE + "_SingleProcessDataLoaderIter"):
    count += 1
    print("loader of %s: no workers, %d batches loaded in the program itself" % (
        loader._dataset.type.name, loader._num_yielded))
if not count:
    print("There is no iterator of a torch DataLoader.")
