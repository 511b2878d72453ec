/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/step_rows.h"

#include <math.h>
#include <stdlib.h>

#include "rings/rows.h"

enum { MOST_ROWS = 4000 };

static const char *const names[PRB_STEP_ROW_PARTS] = {
	[PRB_STEP_ROW_DATA] = "data",
	[PRB_STEP_ROW_COMMUNICATION] = "communication",
	[PRB_STEP_ROW_EVALUATION] = "evaluation",
	[PRB_STEP_ROW_CHECKPOINT] = "checkpoint",
};

struct reading {
	struct prb_step_rows *rows;
	double since;
	int duration, parts[PRB_STEP_ROW_PARTS]; /* positions of the columns; -1: there is none */
};

/* Milliseconds of the row as seconds, but at most so many; 0: not known. */
static double seconds_of(const struct prb_ring_item *item, int column, double most)
{
	double value = prb_ring_real(item, column, 0) / 1e3;

	return value > 0 && isfinite(value) ? fmin(value, most) : 0;
}

static struct prb_error *add(void *context, const struct prb_ring_item *item)
{
	static const double longest = 1e6;
	const struct reading *reading = context;
	struct prb_step_rows *rows = reading->rows;
	struct prb_step_row row = {.ended = (double)item->time / 1e9,
				   .seconds = seconds_of(item, reading->duration, longest)},
			    *place;

	if (row.ended < reading->since || row.seconds <= 0)
		return NULL;
	for (size_t i = 0; i < PRB_STEP_ROW_PARTS; i++)
		row.parts[i] = seconds_of(item, reading->parts[i], row.seconds);
	rows->list.count = prb_ring_rows_keep(rows->list.items, rows->list.count, MOST_ROWS,
					      sizeof(*rows->list.items));
	place = prb_vec_push(&rows->list);
	if (!place)
		return prb_error_nomem();
	*place = row;
	return NULL;
}

static struct prb_error *begin(void *context, struct prb_ring *ring, bool *wanted)
{
	struct reading *reading = context;

	if (!prb_ring_is(ring, "python", "torch_step_timing"))
		return NULL;
	reading->duration = prb_ring_column(ring, "duration", PRB_RING_REAL);
	for (size_t i = 0; i < PRB_STEP_ROW_PARTS; i++)
		reading->parts[i] = prb_ring_column(ring, names[i], PRB_RING_REAL);
	*wanted = reading->duration >= 0;
	return *wanted ? prb_ring_skip_before(ring, (int64_t)(reading->since * 1e9)) : NULL;
}

static int by_end(const void *a, const void *b)
{
	double x = ((const struct prb_step_row *)a)->ended;
	double y = ((const struct prb_step_row *)b)->ended;

	return (x > y) - (x < y);
}

struct prb_error *prb_step_rows_read(struct prb_target *target, double since,
				     struct prb_step_rows *ret)
{
	struct reading reading = {.rows = ret, .since = since};
	struct prb_error *err;

	*ret = (struct prb_step_rows){};
	err = prb_ring_visit(target, &(struct prb_ring_visit){begin, add, &reading});
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_end);
	return err;
}

void prb_step_rows_deinit(struct prb_step_rows *rows)
{
	prb_vec_free(&rows->list);
}
