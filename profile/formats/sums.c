/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/formats/sums.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "profile/recording/fold.h"

struct prb_error *prb_sums_init(struct prb_sums *ret, const struct prb_recording *recording,
				bool lines)
{
	*ret = (struct prb_sums){.recording = recording};
	PRB_TRY(prb_fold_stacks(recording->tree, lines, &ret->folded));
	return prb_order_make(recording, &ret->order);
}

void prb_sums_deinit(struct prb_sums *sums)
{
	free(sums->folded);
	prb_order_deinit(&sums->order);
	prb_number_map_deinit(&sums->known);
	prb_vec_free(&sums->list);
}

static struct prb_error *add_run(struct prb_sums *sums, const struct prb_run *run)
{
	uint64_t key = (uint64_t)sums->folded[run->stack] << 8 | (uint64_t)run->state;
	size_t number = sums->list.count;
	struct prb_sum *sum;

	if (!prb_number_map_get(&sums->known, key, &number)) {
		sum = prb_vec_push(&sums->list);
		if (!sum || !prb_number_map_put(&sums->known, key, number))
			return prb_error_nomem();
		sum->stack = sums->folded[run->stack];
		sum->state = run->state;
	}
	sum = &sums->list.items[number];
	sum->samples += run->samples;
	sum->cpu += run->cpu;
	sum->wall += run->wall;
	sum->queue += run->queue;
	return NULL;
}

struct prb_error *prb_sums_of_thread(struct prb_sums *sums, uint32_t thread)
{
	prb_number_map_deinit(&sums->known);
	sums->known = (struct prb_number_map){};
	sums->list.count = 0;
	prb_order_each(i, &sums->order, thread)
		PRB_TRY(add_run(sums, &sums->recording->runs.items[*i]));
	return NULL;
}
