/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/run/round.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/spec/command_line.h"

void prb_still_round_deinit(struct prb_still_round *r)
{
	/* The dumps are borrowed. */
	prb_vec_free(&r->round.list);
	for (size_t i = 0; i < r->natives.count; i++)
		prb_dump_destroy(r->natives.items[i]);
	prb_vec_free(&r->natives);
	prb_job_deinit(&r->job);
}

static int by_pid(const void *a, const void *b)
{
	const struct prb_rank *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct prb_error *add_rank(struct prb_job *job, const struct prb_why_one *one)
{
	struct prb_rank *rank = prb_vec_push(&job->ranks);
	prb_auto_str struct prb_str command = {}, cut = {};

	if (!rank)
		return prb_error_nomem();
	rank->rank = rank->pid = one->process.pid;
	rank->local_rank = -1;
	prb_command_line_text(&command, &one->process);
	prb_command_line_cut(&cut, &one->process);
	rank->command = prb_str_take(&command);
	rank->cut = prb_str_take(&cut);
	return rank->command && rank->cut ? NULL : prb_error_nomem();
}

static const struct prb_why_one *find(const struct prb_standstill *s, pid_t pid)
{
	const struct prb_still_process *process;

	prb_vec_each (process, &s->list)
		if (process->pid == pid)
			return process->one;
	return NULL;
}

static bool is_in_c(const struct prb_dump *dump)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads)
		if (thread->in_c)
			return true;
	return false;
}

static struct prb_error *read_native(const struct prb_why_one *one, struct prb_still_round *r,
				     struct prb_dump **ret)
{
	const struct prb_dump_options options = {
		.no_values = true, .no_command = true, .native = true};
	struct prb_dump **place = prb_vec_push(&r->natives);

	if (!place)
		return prb_error_nomem();
	PRB_TRY(prb_error_tolerate(prb_dump_create(one->target, &options, place), NULL));
	if (*place && (*place)->threads.count)
		*ret = *place;
	return NULL;
}

static struct prb_error *add_seen(struct prb_still_round *r, const struct prb_rank *rank,
				  const struct prb_why_one *one, bool native)
{
	struct prb_dump *dump = one->dump;
	struct prb_seen *seen;

	if (native && is_in_c(dump))
		PRB_TRY(read_native(one, r, &dump));
	seen = prb_vec_push(&r->round.list);
	if (!seen)
		return prb_error_nomem();
	*seen = (struct prb_seen){
		.rank = rank, .dump = dump, .main = dump->threads.items, .ran_ns = -1};
	return NULL;
}

struct prb_error *prb_still_round_make(const struct prb_standstill *s, bool native,
				       struct prb_still_round *ret)
{
	const struct prb_still_process *process;
	struct prb_rank *rank;

	ret->job.name = strdup("probing run");
	ret->job.world_size = -1;
	if (!ret->job.name)
		return prb_error_nomem();
	prb_vec_each (process, &s->list)
		if (prb_why_main(process->one))
			PRB_TRY(add_rank(&ret->job, process->one));
	if (ret->job.ranks.count)
		qsort(ret->job.ranks.items, ret->job.ranks.count, sizeof(*rank), by_pid);
	prb_vec_each (rank, &ret->job.ranks)
		PRB_TRY(add_seen(ret, rank, find(s, rank->pid), native));
	return NULL;
}
