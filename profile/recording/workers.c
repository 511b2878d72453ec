/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/workers.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

bool prb_worker_is(const struct prb_profile_thread *thread)
{
	static const char name[] = "pt_autograd_";

	return thread->os_name && !strncmp(thread->os_name, name, sizeof(name) - 1);
}

static int compare(const void *a, const void *b)
{
	const struct prb_run *one = a, *other = b;

	return one->begin < other->begin ? -1 : one->begin > other->begin;
}

void prb_workers_sort(struct prb_workers *w)
{
	if (w->runs.count)
		qsort(w->runs.items, w->runs.count, sizeof(*w->runs.items), compare);
}

void prb_workers_deinit(struct prb_workers *w)
{
	prb_vec_free(&w->runs);
}

/** The first that ends after @p time; a thread's own never overlap. */
static size_t find(const struct prb_workers *w, int64_t time)
{
	size_t low = 0, high = w->runs.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->runs.items[middle].begin + w->runs.items[middle].wall <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/** The part of @p run from @p begin to @p end, with its share of all that is counted. */
static struct prb_error *put(const struct prb_run *run, const struct prb_run *worker, int64_t begin,
			     int64_t end, struct prb_recording *to)
{
	struct prb_run *piece;
	double share;

	if (end <= begin)
		return NULL;
	piece = prb_vec_push(&to->runs);
	if (!piece)
		return prb_error_nomem();
	share = (double)(end - begin) / (double)run->wall;
	*piece = *run;
	piece->begin = begin;
	piece->wall = end - begin;
	/* A part of a sample is none; the last piece has what is left. */
	piece->samples =
		(uint32_t)((double)run->samples * (double)(end - run->begin) / (double)run->wall) -
		(uint32_t)((double)run->samples * (double)(begin - run->begin) / (double)run->wall);
	piece->reads = PRB_MIN(run->reads, piece->samples);
	piece->cpu = (int64_t)((double)run->cpu * share);
	piece->queue = (int64_t)((double)run->queue * share);
	piece->cpu_squares = run->cpu_squares * share;
	piece->wall_squares = prb_run_wall_squares(run) * share;
	piece->queue_squares = run->queue_squares * share;
	if (!worker)
		return NULL;
	share = (double)(end - begin) / (double)worker->wall;
	piece->stack = worker->stack;
	piece->state = worker->state;
	piece->cpu += (int64_t)((double)worker->cpu * share);
	piece->cpu_squares += worker->cpu_squares * share;
	return NULL;
}

struct prb_error *prb_workers_split(const struct prb_workers *w, const struct prb_run *run,
				    struct prb_recording *to)
{
	const int64_t end = run->begin + run->wall;
	int64_t at = run->begin;

	for (size_t i = find(w, at); i < w->runs.count && at < end; i++) {
		const struct prb_run *worker = &w->runs.items[i];
		int64_t to_time = PRB_MIN(end, worker->begin + worker->wall);

		if (worker->begin >= end)
			break;
		/* Of several GPUs, what was first there is shown. */
		if (to_time <= at)
			continue;
		PRB_TRY(put(run, NULL, at, PRB_MIN(worker->begin, end), to));
		at = PRB_MAX(at, worker->begin);
		PRB_TRY(put(run, worker, at, to_time, to));
		at = to_time;
	}
	return put(run, NULL, at, end, to);
}
