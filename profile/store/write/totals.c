/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/write/totals.h"

#include <string.h>

#include "base/cleanup.h"

static struct prb_error *find(struct prb_totals *totals, const struct prb_run *run,
			      struct prb_total **ret)
{
	uint64_t key = (uint64_t)run->stack * PRB_RUN_STATES + run->state;
	size_t number = totals->list.count;

	if (!prb_number_map_get(&totals->numbers, key, &number)) {
		*ret = prb_vec_push(&totals->list);
		if (!*ret || !prb_number_map_put(&totals->numbers, key, number))
			return prb_error_nomem();
		(*ret)->stack = run->stack;
		(*ret)->state = run->state;
	}
	*ret = &totals->list.items[number];
	return NULL;
}

struct prb_error *prb_totals_set(struct prb_totals *totals, const struct prb_run *runs,
				 size_t count)
{
	struct prb_total *total;

	prb_vec_each (total, &totals->list)
		total->now = total->complete;
	for (size_t i = 0; i < count; i++) {
		PRB_TRY(find(totals, &runs[i], &total));
		total->now.samples += runs[i].samples;
		total->now.cpu += runs[i].cpu;
		total->now.wall += runs[i].wall;
		total->now.queue += runs[i].queue;
	}
	return NULL;
}

void prb_totals_cut(struct prb_totals *totals)
{
	struct prb_total *total;

	prb_vec_each (total, &totals->list)
		total->complete = total->now;
}

bool prb_total_changed(const struct prb_total *total)
{
	const struct prb_total_sums *a = &total->now, *b = &total->written;

	return a->samples != b->samples || a->cpu != b->cpu || a->wall != b->wall ||
	       a->queue != b->queue;
}

void prb_totals_clear(struct prb_totals *totals)
{
	prb_vec_free(&totals->list);
	prb_number_map_deinit(&totals->numbers);
}
