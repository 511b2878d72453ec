/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/order.h"

#include <stdlib.h>

struct prb_error *prb_order_make(const struct prb_recording *recording, struct prb_order *ret)
{
	size_t threads = recording->threads.count;
	const struct prb_run *run;

	ret->runs = calloc(recording->runs.count + 1, sizeof(*ret->runs));
	ret->begin = calloc(threads + 2, sizeof(*ret->begin));
	if (!ret->runs || !ret->begin)
		return prb_error_nomem();
	/* Each thread's place is counted one further on, and is where it belongs when all are in.
	 */
	prb_vec_each (run, &recording->runs)
		ret->begin[run->thread + 2]++;
	for (size_t i = 2; i <= threads; i++)
		ret->begin[i] += ret->begin[i - 1];
	for (uint32_t i = 0; i < recording->runs.count; i++)
		ret->runs[ret->begin[recording->runs.items[i].thread + 1]++] = i;
	return NULL;
}

void prb_order_deinit(struct prb_order *order)
{
	free(order->runs);
	free(order->begin);
	*order = (struct prb_order){};
}
