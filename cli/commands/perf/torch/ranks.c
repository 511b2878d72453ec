/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/torch/ranks.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "cluster/looks/look.h"
#include "control/pause_state.h"

/* Longer if a rank stands out, and chance may do it. */
static const double SECONDS[] = {3, 8};

void prb_torch_ranks_deinit(struct prb_torch_ranks *ranks)
{
	prb_late_deinit(&ranks->late);
	prb_round_deinit(&ranks->round);
	prb_jobs_deinit(&ranks->jobs);
}

/* The job with the process and another rank that runs here. */
static const struct prb_job *job_of(const struct prb_jobs *jobs, pid_t pid)
{
	const struct prb_job *job;

	prb_vec_each (job, &jobs->list) {
		const struct prb_rank *rank;
		bool is_rank = false;
		size_t here = 0;

		prb_vec_each (rank, &job->ranks) {
			is_rank |= rank->pid == pid;
			here += rank->pid != 0;
		}
		if (is_rank && here > 1)
			return job;
	}
	return NULL;
}

static struct prb_error *look(pid_t pid, double seconds, prb_torch_steps_since *steps,
			      void *context, struct prb_torch_ranks *ret)
{
	struct prb_seen *seen;

	prb_round_deinit(&ret->round);
	ret->round = (struct prb_round){};
	PRB_TRY(prb_round_make(ret->job, false, false, NULL, &ret->round));
	steps(context);
	PRB_TRY(prb_pace_take(ret->job, seconds, false, &ret->round));
	prb_vec_each (seen, &ret->round.list)
		if (seen->rank->pid == pid)
			seen->pace->steps = steps(context);
	return prb_pace_judge(&ret->round, &ret->found);
}

struct prb_error *prb_torch_ranks_look(pid_t pid, prb_torch_steps_since *steps, void *context,
				       struct prb_torch_ranks *ret)
{
	if (getenv(PRB_PAUSE_CLIENT))
		return NULL;
	PRB_TRY(prb_jobs_find(&ret->jobs));
	ret->job = job_of(&ret->jobs, pid);
	if (!ret->job)
		return NULL;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(SECONDS); i++) {
		PRB_TRY(look(pid, SECONDS[i], steps, context, ret));
		if (!ret->found.slow || ret->found.sure)
			break;
	}
	PRB_TRY(prb_late_find(&ret->round, &ret->found, &ret->late));
	ret->own = ret->late.rank && ret->late.rank->rank->pid == pid;
	return NULL;
}

void prb_torch_ranks_text(const struct prb_torch_ranks *ranks, struct prb_str *s)
{
	prb_late_text(&ranks->late, s);
}

void prb_torch_ranks_evidence(const struct prb_torch_ranks *ranks, struct prb_str *s)
{
	prb_str_printf(s, "%ld looks at ", ranks->found.looks);
	if (ranks->job->complete)
		prb_str_printf(s, "all %zu ranks", ranks->round.list.count);
	else
		prb_str_printf(s, "the %zu ranks on this machine, not at others",
			       ranks->round.list.count);
	if (ranks->late.rank)
		prb_str_printf(s, ": in collectives %.0f %% of the time, rank %ld %.0f %%",
			       100 * ranks->found.others_wait, ranks->late.rank->rank->rank,
			       100 * ranks->found.waits);
	else
		prb_str_puts(s, ": none surely waits less than the others");
}
