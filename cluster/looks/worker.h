/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The worker process that a data loader of torch waits for. One thread at a time. */
#ifndef PRB_CLUSTER_LOOKS_WORKER_H
#define PRB_CLUSTER_LOOKS_WORKER_H

#include "base/error.h"
#include "dump/model/dump.h"

/**
 * If @p thread, of process @p pid, waits in torch's data loader, sets *ret to "worker 4251, which
 * is at Images.__getitem__ data.py:23, idle …", for the caller to free; else, and if no worker is
 * at work, to NULL. Of several workers it is the one at work, or the first of them.
 */
struct prb_error *prb_worker_describe(pid_t pid, const struct prb_dump_thread *thread,
				      char **ret) PRB_MUST_CHECK;

#endif
