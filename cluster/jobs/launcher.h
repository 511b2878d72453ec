/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The table of its processes that a launcher keeps for debuggers (MPIR_proctable): srun has
 * it, and its ranks on this machine are no children of it.
 *
 * The launcher's memory is hostile data: counts and texts are bounded.
 *
 * Threading: any thread.
 */
#ifndef PRB_CLUSTER_JOBS_LAUNCHER_H
#define PRB_CLUSTER_JOBS_LAUNCHER_H

#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct prb_launched {
	PRB_VEC(pid_t) list; /**< on any host, so that a pid may be another process's here */
};

/** Reads the table of process @p pid; an empty list if it has none, or may not be read. */
struct prb_error *prb_launched_read(pid_t pid, struct prb_launched *ret) PRB_MUST_CHECK;
void prb_launched_deinit(struct prb_launched *launched);

#endif
