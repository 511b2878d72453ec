/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing cluster perf`: one profile of all ranks of this machine. */
#include <stdlib.h>

#include "cli/commands/cluster.h"
#include "perf/performance.h"
#include "base/cleanup.h"
#include "base/str.h"

/** The ranks that have a process. */
struct running {
	PRB_VEC(pid_t) pids;
	PRB_VEC(char *) names;
};

static void running_deinit(struct running *running)
{
	char **name;

	prb_vec_each (name, &running->names)
		free(*name);
	prb_vec_free(&running->names);
	prb_vec_free(&running->pids);
}

static struct prb_error *add(struct running *running, const struct prb_rank *rank)
{
	pid_t *pid = prb_vec_push(&running->pids);
	char **name = prb_vec_push(&running->names);

	if (!pid || !name)
		return prb_error_nomem();
	*pid = rank->pid;
	*name = prb_format("rank %ld", rank->rank);
	return *name ? NULL : prb_error_nomem();
}

struct prb_error *prb_cluster_perf(struct prb_cluster *c)
{
	__attribute__((cleanup(running_deinit))) struct running running = {};
	const struct prb_rank *rank;

	if (c->bundle)
		return prb_error_create(PRB_ERROR_USAGE, "a profile is of a job that runs");
	prb_vec_each (rank, &c->job->ranks)
		if (rank->pid)
			PRB_TRY(add(&running, rank));

	const struct prb_performance_several several = {running.pids.items, running.names.items,
							running.pids.count};
	const struct prb_performance_settings settings = {.duration = c->settings->duration,
							  .output = c->settings->output,
							  .cc = c->settings->native,
							  .json = c->settings->json,
							  .several = &several};

	return prb_performance_run(c->cli, &settings, NULL);
}
