/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/pieces.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "profile/recording/range.h"

static int by_thread_and_begin(const void *a, const void *b)
{
	const struct prb_profile_piece *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Makes one of pieces that overlap; how many are left. */
static size_t merge(struct prb_profile_piece *pieces, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct prb_profile_piece *last = kept ? &pieces[kept - 1] : NULL;

		if (last && last->tid == pieces[i].tid && pieces[i].begin <= last->end)
			last->end = PRB_MAX(last->end, pieces[i].end);
		else
			pieces[kept++] = pieces[i];
	}
	return kept;
}

/* The first piece of the thread that ends behind @at, or the end of its pieces. */
static size_t first_behind(const struct prb_profile_piece *pieces, size_t count, pid_t tid,
			   int64_t at)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pieces[middle].tid < tid ||
		    (pieces[middle].tid == tid && pieces[middle].end <= at))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct prb_error *prb_recording_keep_pieces(struct prb_recording *recording,
					    struct prb_profile_piece *pieces, size_t count)
{
	PRB_VEC(struct prb_run) kept = {};
	struct prb_profile_thread *thread;
	const struct prb_run *run;

	if (count)
		qsort(pieces, count, sizeof(*pieces), by_thread_and_begin);
	count = merge(pieces, count);
	prb_vec_each (thread, &recording->threads)
		thread->cpu = 0;
	prb_vec_each (run, &recording->runs) {
		pid_t tid = recording->threads.items[run->thread].tid;
		int64_t end = run->begin + run->wall;

		for (size_t i = first_behind(pieces, count, tid, run->begin);
		     i < count && pieces[i].tid == tid && pieces[i].begin < end; i++) {
			struct prb_run inside, *slot;

			if (!prb_run_inside(run, pieces[i].begin, pieces[i].end, &inside))
				continue;
			slot = prb_vec_push(&kept);
			if (!slot) {
				prb_vec_free(&kept);
				return prb_error_nomem();
			}
			*slot = inside;
			recording->threads.items[inside.thread].cpu += inside.cpu;
		}
	}
	prb_vec_free(&recording->runs);
	recording->runs.items = kept.items;
	recording->runs.count = kept.count;
	recording->runs.capacity = kept.capacity;
	recording->process_cpu = -1;
	return NULL;
}
