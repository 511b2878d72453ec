/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text that `probing cluster` prints of a job. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/cluster/cluster.h"
#include "command/output.h"
#include "cluster/looks/stacks.h"
#include "cluster/looks/look.h"
#include "cluster/looks/thread_text.h"
#include "cluster/looks/why.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"

enum { HOST_WIDTH = 12, ROLE_WIDTH = 10, COMMAND_WIDTH = 60 };

/** "torch 127.0.0.1:29500 · 8 ranks · all on this machine". */
static void put_job(struct prb_str *s, const struct prb_cluster *c, const struct prb_job *job)
{
	prb_text_escape(s, job->name);
	prb_str_printf(s, " · %zu rank%s", job->ranks.count, job->ranks.count == 1 ? "" : "s");
	if (c->bundle) {
		prb_str_puts(s, ", saved in ");
		prb_text_escape(s, c->bundle);
		prb_str_putc(s, '\n');
	} else if (job == &c->merged)
		prb_str_printf(s, " on %zu host%s\n", c->hosts.list.count,
			       c->hosts.list.count == 1 ? "" : "s");
	else if (job->complete)
		prb_str_puts(s, ", all on this machine\n");
	else if (job->world_size > 0)
		prb_str_printf(s, " of %ld on this machine\n", job->world_size);
	else
		prb_str_puts(s, " on this machine\n");
}

/** Which columns the ranks of a job have, and how wide they are. */
struct node_columns {
	bool hosts, roles;
	size_t role_width, command_width;
};

static struct node_columns node_columns(const struct prb_job *job)
{
	struct node_columns columns = {.command_width = strlen("COMMAND")};
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks) {
		size_t width = rank->command ? prb_text_width(rank->command) : 0;

		columns.hosts |= rank->host != NULL;
		columns.roles |= rank->role != NULL;
		columns.command_width = PRB_MAX(columns.command_width, width);
	}
	columns.command_width = PRB_MIN(columns.command_width, COMMAND_WIDTH);
	return columns;
}

static void put_column(struct prb_str *s, const char *text, size_t width)
{
	prb_auto_str struct prb_str escaped = {};

	prb_text_escape(&escaped, text);
	prb_text_column(s, prb_str_text(&escaped), width);
	prb_str_puts(s, "  ");
}

/** Where the main thread is, and what it waits for. */
static void put_main(struct prb_str *s, const struct prb_seen *seen)
{
	if (!seen)
		prb_str_puts(s, "not read");
	else if (seen->main)
		prb_put_thread(s, seen->main);
	else
		prb_why_put_absence(s, seen, false);
}

static void put_node(struct prb_str *s, const struct prb_rank *rank, const struct prb_seen *seen,
		     const struct node_columns *columns)
{
	prb_str_printf(s, "%6ld  ", rank->rank);
	if (columns->hosts)
		put_column(s, rank->host ? rank->host : "-", HOST_WIDTH);
	if (!rank->pid) {
		prb_str_puts(s, "      -  ");
		prb_text_escape(s, seen && seen->error ? seen->error : "no process has this rank");
		prb_str_putc(s, '\n');
		return;
	}
	prb_str_printf(s, "%7d  ", (int)rank->pid);
	if (columns->roles)
		put_column(s, rank->role ? rank->role : "-", ROLE_WIDTH);
	/* Escaped already. */
	prb_text_column(s, rank->command, columns->command_width);
	prb_str_puts(s, "  ");
	put_main(s, seen);
	prb_str_putc(s, '\n');
}

static void put_node_json(struct prb_json *json, const struct prb_rank *rank,
			  const struct prb_seen *seen)
{
	prb_auto_str struct prb_str main = {};

	prb_json_open(json, NULL, '{');
	prb_json_integer(json, "rank", rank->rank);
	prb_json_text(json, "host", rank->host);
	prb_json_natural(json, "local_rank", rank->local_rank);
	prb_json_natural(json, "pid", rank->pid ? rank->pid : -1);
	prb_json_text(json, "role", rank->role);
	prb_json_text(json, "command", rank->command);
	if (rank->pid)
		put_main(&main, seen);
	prb_json_text(json, "main_thread", rank->pid ? prb_str_text(&main) : NULL);
	prb_json_close(json, '}');
}

/** A job, and a look at its ranks, in the same order. */
struct shown_job {
	const struct prb_job *job;
	const struct prb_round *round;
};

static const struct prb_seen *seen_of(const struct shown_job *shown, size_t i)
{
	return i < shown->round->list.count ? &shown->round->list.items[i] : NULL;
}

static void put_job_json(struct prb_json *json, const struct shown_job *shown)
{
	const struct prb_job *job = shown->job;

	prb_json_open(json, NULL, '{');
	prb_json_text(json, "job", job->name);
	prb_json_integer(json, "uid", job->uid);
	prb_json_natural(json, "world_size", job->world_size);
	prb_json_bool(json, "complete", job->complete);
	prb_json_open(json, "ranks", '[');
	for (size_t i = 0; i < job->ranks.count; i++)
		put_node_json(json, &job->ranks.items[i], seen_of(shown, i));
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

static void put_job_text(struct prb_str *s, const struct prb_cluster *c,
			 const struct shown_job *shown)
{
	const struct prb_job *job = shown->job;
	const struct node_columns columns = node_columns(job);

	put_job(s, c, job);
	prb_str_puts(s, "  RANK  ");
	if (columns.hosts)
		put_column(s, "HOST", HOST_WIDTH);
	prb_str_puts(s, "    PID  ");
	if (columns.roles)
		put_column(s, "ROLE", ROLE_WIDTH);
	put_column(s, "COMMAND", columns.command_width);
	prb_str_puts(s, "MAIN THREAD\n");
	for (size_t i = 0; i < job->ranks.count; i++)
		put_node(s, &job->ranks.items[i], seen_of(shown, i), &columns);
}

struct prb_error *prb_cluster_nodes(struct prb_cluster *c)
{
	const struct prb_job *jobs = c->job ? c->job : c->jobs.list.items;
	size_t count = c->job ? 1 : c->jobs.list.count;
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};

	if (!count)
		return prb_jobs_choose(&c->jobs, NULL, &c->job);
	if (c->settings->json)
		prb_json_open(&json, NULL, '[');
	for (const struct prb_job *job = jobs; job < jobs + count; job++) {
		prb_auto_round struct prb_round round = {};
		const struct shown_job shown = {
			job, c->last->list.count ? c->last : (const struct prb_round *)&round};

		if (!c->last->list.count)
			PRB_TRY(prb_round_make(job, false, true, NULL, &round));
		if (c->settings->json)
			put_job_json(&json, &shown);
		else
			put_job_text(&text, c, &shown);
	}
	if (c->settings->json) {
		prb_json_close(&json, ']');
		prb_str_putc(&text, '\n');
	}
	return prb_output_lines(&text, c->settings->json);
}

/** Why a rank is not in the tree; NULL: it is. */
static const char *why_unread(const struct prb_seen *seen)
{
	if (seen->main)
		return NULL;
	return seen->error	  ? seen->error
	       : !seen->rank->pid ? "no process has this rank"
				  : "it has no thread that could be read";
}

/** A line for each rank that is not in the tree, with the reason. */
static void put_unread(struct prb_str *s, const struct prb_round *round)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &round->list) {
		if (seen->main)
			continue;
		prb_str_printf(s, "rank %ld: ", seen->rank->rank);
		prb_text_escape(s, why_unread(seen));
		prb_str_putc(s, '\n');
	}
}

static void put_seen_json(struct prb_json *json, const struct prb_seen *seen)
{
	prb_json_open(json, NULL, '{');
	prb_json_integer(json, "rank", seen->rank->rank);
	prb_json_text(json, "host", seen->rank->host);
	prb_json_natural(json, "pid", seen->rank->pid ? seen->rank->pid : -1);
	prb_json_natural(json, "tid", seen->main && seen->main->tid ? seen->main->tid : -1);
	prb_json_text(json, "unread", why_unread(seen));
	prb_json_close(json, '}');
}

void prb_cluster_put_unanswered(struct prb_json *json, const struct prb_cluster *c)
{
	const struct prb_unanswered *host;

	prb_json_open(json, "unanswered", '[');
	prb_vec_each (host, &c->unanswered) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "host", host->host);
		prb_json_text(json, "error", host->error);
		prb_json_real(json, "waited_s", host->waited, 1);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static void put_dump_json(struct prb_str *s, const struct prb_cluster *c,
			  const struct prb_merged *merged)
{
	const struct prb_seen *seen;
	struct prb_json json = {s};

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "job", c->job->name);
	prb_json_natural(&json, "world_size", c->job->world_size);
	prb_json_text(&json, "bundle", c->bundle);
	prb_merged_json(merged, &json, "stacks");
	prb_json_open(&json, "unread", '[');
	prb_vec_each (seen, &c->last->list)
		if (!seen->main)
			prb_json_integer(&json, NULL, seen->rank->rank);
	prb_json_close(&json, ']');
	prb_json_open(&json, "ranks", '[');
	prb_vec_each (seen, &c->last->list)
		put_seen_json(&json, seen);
	prb_json_close(&json, ']');
	prb_cluster_put_unanswered(&json, c);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

struct prb_error *prb_cluster_dump(struct prb_cluster *c)
{
	prb_auto_str struct prb_str text = {};
	struct prb_merged *merged;

	PRB_TRY(prb_merged_create(c->last, c->settings->all, c->settings->native, &merged));
	if (c->settings->json) {
		put_dump_json(&text, c, merged);
	} else {
		put_job(&text, c, c->job);
		prb_str_putc(&text, '\n');
		prb_merged_text(merged, &text);
		put_unread(&text, c->last);
	}
	prb_merged_destroy(merged);
	return prb_output(&text);
}
