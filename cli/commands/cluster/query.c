/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SQL over the ranks of a job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/cluster/cluster.h"
#include "cli/commands/query/query.h"
#include "command/descriptors.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "cluster/jobs/rank_set.h"
#include "cluster/rows/rows.h"
#include "sql/engine/global_tables.h"
#include "base/cleanup.h"

static void warn(void *context, const char *text)
{
	(void)context;
	prb_warn(text);
}

static struct prb_error *query_init(const struct prb_cluster *c, struct prb_query *query)
{
	PRB_TRY(prb_query_format(c->settings->json ? "json" : "table", &query->format));
	PRB_TRY(prb_session_create(&query->session));
	prb_session_on_warning(query->session, warn, NULL);
	return NULL;
}

static void query_deinit(struct prb_query *query)
{
	prb_interrupt_release();
	prb_session_destroy(query->session);
	prb_error_destroy(query->failure);
}

/** Ranks whose rows are missing, since they have no process. */
static struct prb_error *warn_of_missing(const struct prb_job *job)
{
	struct prb_rank_set set = {};
	prb_auto_str struct prb_str text = {};
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks) {
		long *place = rank->pid ? NULL : prb_vec_push(&set.list);

		if (place)
			*place = rank->rank;
		text.failed |= !rank->pid && !place;
	}
	if (set.list.count) {
		prb_str_puts(&text, set.list.count == 1 ? "rank " : "ranks ");
		prb_rank_set_text(&text, &set);
		prb_str_puts(&text, set.list.count == 1 ? " has no process, and no rows"
							: " have no process, and no rows");
		prb_warn(prb_str_text(&text));
	}
	prb_vec_free(&set.list);
	return text.failed ? prb_error_nomem() : NULL;
}

/** Opens the processes of the ranks, each as what it is called in `_rank`. */
static struct prb_error *open_ranks(const struct prb_cluster *c, struct prb_query *query)
{
	const struct prb_rank *rank;
	struct prb_cli cli = *c->cli;

	cli.targets.count = 0;
	if (c->bundle) {
		cli.targets.items[cli.targets.count++] = c->bundle;
		return prb_query_open(query, &cli, false);
	}
	PRB_TRY(warn_of_missing(c->job));
	prb_descriptors_raise();
	prb_vec_each (rank, &c->job->ranks) {
		struct prb_target *target;
		struct prb_error *err;
		char name[16];

		if (!rank->pid)
			continue;
		query->targets++;
		snprintf(name, sizeof(name), "%d", (int)rank->pid);
		err = prb_target_open_process(rank->pid, &target);
		if (err) {
			prb_warn(err->message);
			query->lost++;
			prb_error_destroy(query->failure);
			query->failure = err;
			continue;
		}
		PRB_TRY(prb_session_add_target(query->session, name, target));
		prb_session_set_rank(query->session, rank->rank);
	}
	if (query->lost && query->lost == query->targets)
		return prb_error_prefix(prb_steal(&query->failure), "no rank can be read");
	return NULL;
}

static struct prb_error *run_on(const struct prb_cluster *c, const char *sql)
{
	__attribute__((cleanup(query_deinit))) struct prb_query query = {};
	const struct prb_error *failure;

	PRB_TRY(query_init(c, &query));
	PRB_TRY(open_ranks(c, &query));
	prb_interrupt_catch(query.session);
	PRB_TRY(prb_query_run(&query, sql, strlen(sql)));
	failure = query.failure ? query.failure : prb_session_failure(query.session);
	return failure ? prb_error_create(failure->code, "not all ranks could be read: %s",
					  failure->message)
		       : NULL;
}

/** Answers the query of another host, or of this one. */
struct prb_error *prb_cluster_rows(struct prb_cluster *c)
{
	prb_auto_str struct prb_str none = {};

	if (c->job)
		return run_on(c, c->cli->arguments[1]);
	prb_str_puts(&none, "[]\n");
	return prb_output(&none);
}

static struct prb_error *run_global(struct prb_cluster *c, struct prb_query *query,
				    const struct prb_str *sql, const char *job)
{
	const struct prb_rows_options options = {.reach = &c->reach,
						 .hosts = &c->hosts,
						 .job = job,
						 .deadline_s = prb_cluster_timeout(c),
						 .strict = c->settings->strict,
						 .tree = c->settings->tree};
	prb_auto_str struct prb_str receipt = {};
	struct prb_rows *rows;
	struct prb_error *err;

	PRB_TRY(prb_rows_create(&options, &rows));
	prb_session_on_global(query->session, prb_rows_read, rows);
	err = prb_query_run(query, prb_str_text(sql), sql->length);
	prb_rows_receipt(rows, &receipt);
	prb_rows_destroy(rows);
	if (!err)
		err = prb_output_flush();
	fputs(prb_str_text(&receipt), stderr);
	return err;
}

struct prb_error *prb_cluster_query_global(struct prb_cluster *c, const char *job, bool *global)
{
	__attribute__((cleanup(query_deinit))) struct prb_query query = {};
	const char *statement = c->cli->arguments[1];
	prb_auto_str struct prb_str sql = {};
	size_t count;

	PRB_TRY(query_init(c, &query));
	PRB_TRY(prb_global_rewrite(query.session, statement, &sql, &count));
	*global = count > 0;
	if (!count)
		return NULL;
	if (prb_reach_is_far(&c->reach))
		PRB_TRY(prb_reach_find(&c->reach, &c->hosts));
	return run_global(c, &query, &sql, job);
}

struct prb_error *prb_cluster_query(struct prb_cluster *c)
{
	return run_on(c, c->cli->arguments[1]);
}
