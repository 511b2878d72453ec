/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/pauses.h"

#include <math.h>

#include "base/checked.h"

static const double shortest = 1.0 / 16;

void prb_pauses_add(struct prb_pauses *pauses, double us)
{
	double step = us > shortest ? PRB_PAUSE_STEPS * log2(us / shortest) : 0;
	size_t last = PRB_ARRAY_SIZE(pauses->counts) - 1;

	pauses->counts[step < (double)last ? (size_t)step : last]++;
	pauses->count++;
	pauses->max = fmax(pauses->max, us);
	pauses->total += us;
}

/* The length that so many of the stops do not exceed: the middle of its step. */
static double quantile(const struct prb_pauses *pauses, double share)
{
	uint64_t rank = (uint64_t)((double)(pauses->count - 1) * share), sum = 0;
	size_t i = 0;

	while ((sum += pauses->counts[i]) <= rank)
		i++;
	return fmin(shortest * exp2(((double)i + 0.5) / PRB_PAUSE_STEPS), pauses->max);
}

void prb_pauses_sum_up(const struct prb_pauses *pauses, struct prb_profile_cost *cost)
{
	cost->stops = pauses->count;
	if (!pauses->count)
		return;
	cost->pause_p50 = quantile(pauses, 0.5);
	cost->pause_p99 = quantile(pauses, 0.99);
	cost->pause_max = pauses->max;
	cost->pause_total = pauses->total;
}
