/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of this machine's rings for a ClickHouse database. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands/cluster/cluster.h"
#include "cli/commands/cluster/ship_end.h"
#include "clickhouse/ship.h"
#include "command/exit.h"
#include "profile/store/write/store.h"
#include "target/spec/target_spec.h"

/** The processes of a job's ranks; @p names has room for their pids. */
static void add_ranks(const struct prb_job *job, struct prb_texts *targets,
		      char names[PRB_MAX_TEXTS][16])
{
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks) {
		if (!rank->pid || targets->count == PRB_MAX_TEXTS)
			continue;
		snprintf(names[targets->count], 16, "%d", (int)rank->pid);
		targets->items[targets->count] = names[targets->count];
		targets->count++;
	}
}

/** A word is a job, or else a process or what one has left. */
static struct prb_error *add_word(struct prb_cluster *c, const char *word,
				  struct prb_texts *targets, char names[PRB_MAX_TEXTS][16])
{
	enum prb_spec_kind kind = prb_spec_kind(word);
	struct prb_error *err;

	if (kind == PRB_SPEC_RECORDED && targets->count < PRB_MAX_TEXTS) {
		targets->items[targets->count++] = word;
		return NULL;
	}
	if (access(word, F_OK) && prb_store_is_path(word))
		return prb_error_os(errno, "cannot read %.200s", word);
	err = prb_jobs_choose(&c->jobs, word, &c->job);
	if (!err)
		add_ranks(c->job, targets, names);
	else if (kind == PRB_SPEC_PID && targets->count < PRB_MAX_TEXTS &&
		 prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		targets->items[targets->count++] = word;
	return err;
}

void prb_ship_tell_end(const struct prb_ship_sums *sums)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "probing: %" PRIu64 " rows of %zu rings were sent", sums->rows,
		       sums->rings);
	if (sums->refused)
		prb_str_printf(&text, "; %zu rings were refused", sums->refused);
	if (sums->lost)
		prb_str_printf(&text, "; %" PRIu64 " slots were dropped before", sums->lost);
	if (sums->unfinished)
		prb_str_printf(&text, "; %" PRIu64 " slots were never finished", sums->unfinished);
	fprintf(stderr, "%s\n", prb_str_text(&text));
}

struct prb_error *prb_cluster_ship(struct prb_cluster *c)
{
	const struct prb_cluster_settings *s = c->settings;
	char names[PRB_MAX_TEXTS][16];
	struct prb_texts targets = {};
	struct prb_ship_sums sums = {};
	const struct prb_ship_options options = {.to = s->to,
						 .password_file = s->password_file,
						 .state = s->state,
						 .every = s->every,
						 .metrics = s->metrics,
						 .once = s->once,
						 .targets = &targets};
	struct prb_error *err;

	if (!s->to)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "where the rows go is not given"),
			"probing cluster ship --to clickhouse://HOST/DATABASE");
	if (c->cli->target || c->cli->argument_count > 1)
		PRB_TRY(prb_jobs_find(&c->jobs));
	for (size_t i = 0; i < c->cli->targets.count; i++)
		PRB_TRY(add_word(c, c->cli->targets.items[i], &targets, names));
	for (size_t i = 1; i < c->cli->argument_count; i++)
		PRB_TRY(add_word(c, c->cli->arguments[i], &targets, names));
	err = prb_ship_run(&options, &sums);
	prb_ship_tell_end(&sums);
	return err;
}
