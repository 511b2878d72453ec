/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SQL over the ranks of a job. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands/cluster.h"
#include "base/cleanup.h"

/** `probing query` over the processes of the ranks: its rows have _rank. */
struct prb_error *prb_cluster_query(struct prb_cluster *c)
{
	const struct prb_command *query = prb_command_find("query");
	char names[PRB_MAX_TEXTS][16], *arguments[] = {c->cli->arguments[1], NULL};
	struct prb_cli cli = *c->cli;
	const struct prb_rank *rank;

	prb_auto_free void *settings = calloc(1, query->settings_size);
	if (!settings)
		return prb_error_nomem();
	cli.targets.count = 0;
	if (c->bundle)
		cli.targets.items[cli.targets.count++] = c->bundle;
	prb_vec_each (rank, &c->job->ranks) {
		if (!rank->pid || c->bundle)
			continue;
		if (cli.targets.count == PRB_MAX_TEXTS)
			return prb_error_create(PRB_ERROR_UNSUPPORTED,
						"a query reads at most %d ranks", PRB_MAX_TEXTS);
		snprintf(names[cli.targets.count], sizeof(*names), "%d", (int)rank->pid);
		cli.targets.items[cli.targets.count] = names[cli.targets.count];
		cli.targets.count++;
	}
	cli.target = cli.targets.count ? cli.targets.items[0] : NULL;
	cli.command = query;
	cli.arguments = arguments;
	cli.argument_count = 1;
	return query->run(&cli, settings);
}
