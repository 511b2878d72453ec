/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/memory_rows.h"

#include <math.h>
#include <stdlib.h>

#include "rings/rows.h"

enum { MOST_ROWS = 20000 };

static double count_of(const struct prb_ring_item *row, int column)
{
	return prb_ring_has(row, column) ? (double)(int64_t)row->cells[column] : -1;
}

struct reading {
	struct prb_memory_rows *rows;
	int memory, blocks; /* positions of the columns; -1: there is none */
};

static struct prb_error *add(void *context, const struct prb_ring_item *item)
{
	const struct reading *reading = context;
	struct prb_memory_rows *rows = reading->rows;
	double megabytes = prb_ring_real(item, reading->memory, -1);
	struct prb_memory_row *row;

	if (!(megabytes > 0 && isfinite(megabytes)))
		return NULL;
	rows->list.count = prb_ring_rows_keep(rows->list.items, rows->list.count, MOST_ROWS,
					      sizeof(*rows->list.items));
	row = prb_vec_push(&rows->list);
	if (!row)
		return prb_error_nomem();
	*row = (struct prb_memory_row){(double)item->time / 1e9, megabytes * 1e6,
				       count_of(item, reading->blocks)};
	return NULL;
}

static struct prb_error *begin(void *context, struct prb_ring *ring, bool *wanted)
{
	struct reading *reading = context;

	reading->memory = prb_ring_column(ring, "memory_mb", PRB_RING_REAL);
	reading->blocks = prb_ring_column(ring, "python_blocks", PRB_RING_INTEGER);
	*wanted = prb_ring_is(ring, "main", "memory_usage");
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct prb_memory_row *)a)->time;
	double y = ((const struct prb_memory_row *)b)->time;

	return (x > y) - (x < y);
}

struct prb_error *prb_memory_rows_read(struct prb_target *target, struct prb_memory_rows *ret)
{
	struct reading reading = {.rows = ret};
	struct prb_error *err;

	*ret = (struct prb_memory_rows){};
	err = prb_ring_visit(target, &(struct prb_ring_visit){begin, add, &reading});
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_time);
	return err;
}

void prb_memory_rows_deinit(struct prb_memory_rows *rows)
{
	prb_vec_free(&rows->list);
}
