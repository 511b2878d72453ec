/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which rank the others wait for, in the job that a process is a rank of: for the verdicts of
 * `perf --torch`. All its ranks on this machine are looked at from outside for some seconds.
 */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_RANKS_H
#define PRB_CLI_COMMANDS_PERF_TORCH_RANKS_H

#include <sys/types.h>

#include "cluster/jobs/job.h"
#include "cluster/looks/late.h"

/** Starts as {}. */
struct prb_torch_ranks {
	struct prb_jobs jobs;
	struct prb_round round;
	const struct prb_job *job; /**< NULL: it is a rank of none, or the only one here */
	struct prb_slowness found;
	struct prb_late late;
	bool own; /**< the process itself is the late rank */
};

/** Counts the steps of the process since the last call; -1: unknown. */
typedef long prb_torch_steps_since(void *context);

/** Does nothing for a client elsewhere, who may learn of the served process alone. */
struct prb_error *prb_torch_ranks_look(pid_t pid, prb_torch_steps_since *steps, void *context,
				       struct prb_torch_ranks *ret) PRB_MUST_CHECK;
void prb_torch_ranks_deinit(struct prb_torch_ranks *ranks);

/** Appends "rank 1 is 150 ms late at each step, in …", and of how many ranks that is known. */
void prb_torch_ranks_text(const struct prb_torch_ranks *ranks, struct prb_str *s);
/** Appends what was seen of the ranks. */
void prb_torch_ranks_evidence(const struct prb_torch_ranks *ranks, struct prb_str *s);

#endif
