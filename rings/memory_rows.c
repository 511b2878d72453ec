/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/memory_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "rings/files.h"
#include "rings/ring_private.h"

enum { MOST_ROWS = 20000 };

static double real_of(const struct prb_ring_item *row, int column)
{
	double number;

	if (column < 0 || row->nulls >> column & 1)
		return -1;
	memcpy(&number, &row->cells[column], sizeof(number));
	return number;
}

static double count_of(const struct prb_ring_item *row, int column)
{
	return column < 0 || row->nulls >> column & 1 ? -1 : (double)(int64_t)row->cells[column];
}

static struct prb_error *add(struct prb_memory_rows *rows, const struct prb_ring_item *item,
			     int memory, int blocks)
{
	double megabytes = real_of(item, memory);
	struct prb_memory_row *row;

	if (!(megabytes > 0 && isfinite(megabytes)))
		return NULL;
	/* Half of them go at once, so that each row costs the same. */
	if (rows->list.count == MOST_ROWS) {
		rows->list.count = MOST_ROWS / 2;
		memmove(rows->list.items, rows->list.items + MOST_ROWS / 2,
			rows->list.count * sizeof(*rows->list.items));
	}
	row = prb_vec_push(&rows->list);
	if (!row)
		return prb_error_nomem();
	*row = (struct prb_memory_row){(double)item->time / 1e9, megabytes * 1e6,
				       count_of(item, blocks)};
	return NULL;
}

static struct prb_error *read_ring(struct prb_ring_files *files, size_t index,
				   struct prb_memory_rows *ret)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS;
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_ring_item row;
	int memory, blocks;
	bool more = true;

	PRB_TRY(prb_ring_files_open(files, index, &ring));
	if (ring->cold || strcmp(ring->header.schema, "main") != 0 ||
	    strcmp(ring->header.name, "memory_usage") != 0)
		return NULL;
	memory = prb_ring_column(ring, "memory_mb", PRB_RING_REAL);
	blocks = prb_ring_column(ring, "python_blocks", PRB_RING_INTEGER);
	for (;;) {
		PRB_TRY(prb_ring_next_chunk(ring, &always, &more));
		if (!more)
			return NULL;
		while (prb_ring_next_row(ring, &row))
			if (!files->pid || row.pid == files->pid)
				PRB_TRY(add(ret, &row, memory, blocks));
	}
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct prb_memory_row *)a)->time;
	double y = ((const struct prb_memory_row *)b)->time;

	return (x > y) - (x < y);
}

struct prb_error *prb_memory_rows_read(struct prb_target *target, struct prb_memory_rows *ret)
{
	struct prb_ring_files files = {};
	struct prb_error *err = prb_ring_files_find(target, &files);

	*ret = (struct prb_memory_rows){};
	for (size_t i = 0; !err && i < files.list.count; i++) {
		err = read_ring(&files, i, ret);
		if (err && err->code != PRB_ERROR_NOMEM)
			prb_error_destroy(prb_steal(&err));
	}
	prb_ring_files_deinit(&files);
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_time);
	return err;
}

void prb_memory_rows_deinit(struct prb_memory_rows *rows)
{
	prb_vec_free(&rows->list);
}
