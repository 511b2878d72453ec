/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/last_step.h"

#include <math.h>

#include "base/cleanup.h"
#include "rings/rows.h"

struct search {
	int64_t since;
	struct prb_last_step *found;
	int step, duration; /* positions of the columns; -1: there is none */
};

static double real_of(const struct prb_ring_item *row, int column)
{
	double value = prb_ring_real(row, column, 0);

	return isfinite(value) ? value : 0;
}

static struct prb_error *begin(void *context, struct prb_ring *ring, bool *wanted)
{
	struct search *at = context;

	at->found->rings = true;
	if (!prb_ring_is(ring, "main", "training_logs") &&
	    !prb_ring_is(ring, "python", "torch_step_timing"))
		return NULL;
	at->step = prb_ring_column(ring, "step", PRB_RING_INTEGER);
	at->duration = prb_ring_column(ring, "duration", PRB_RING_REAL);
	*wanted = at->step >= 0;
	return *wanted ? prb_ring_skip_before(ring, at->since) : NULL;
}

static struct prb_error *note(void *context, const struct prb_ring_item *row)
{
	const struct search *at = context;
	struct prb_last_step *ret = at->found;

	if (!prb_ring_has(row, at->step))
		return NULL;
	if (row->time > at->since)
		ret->longest = fmax(ret->longest, real_of(row, at->duration));
	if (row->time < ret->ended)
		return NULL;
	ret->ended = row->time;
	ret->number = (int64_t)row->cells[at->step];
	return NULL;
}

struct prb_error *prb_last_step(struct prb_target *target, int64_t since, struct prb_last_step *ret)
{
	struct search search = {.since = since, .found = ret};

	*ret = (struct prb_last_step){.number = -1, .ended = INT64_MIN};
	return prb_ring_visit(target, &(struct prb_ring_visit){begin, note, &search});
}
