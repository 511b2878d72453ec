/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The place in a job of a process that no launcher has given one in its environment: what it
 * has put into os.environ itself (Ray Train), or what torch.distributed knows of it (a program that
 * starts its ranks by torch.multiprocessing). Read from outside.
 *
 * Threading: any thread.
 */
#ifndef PRB_CLUSTER_JOBS_RANK_INSIDE_H
#define PRB_CLUSTER_JOBS_RANK_INSIDE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "target/proc/process.h"
#include "target/target.h"

/** True if it is worth the time: torch is loaded, or Ray runs the process. */
bool prb_rank_inside_is_likely(const struct prb_process *process, struct prb_target *target);

/**
 * Appends variables of launchers, as environ has them: "RANK=3", "WORLD_SIZE=8", "MASTER_ADDR=…",
 * each with a NUL. Nothing if the process is no rank. PRB_ERROR_NOMEM is the only error.
 */
struct prb_error *prb_rank_inside_read(struct prb_target *target,
				       struct prb_str *ret) PRB_MUST_CHECK;

#endif
