/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "records/last_step.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "records/files.h"

static bool has_steps(const struct prb_ring *ring)
{
	const struct prb_ring_header *h = &ring->header;

	return (!strcmp(h->schema, "main") && !strcmp(h->name, "training_logs")) ||
	       (!strcmp(h->schema, "python") && !strcmp(h->name, "torch_step_timing"));
}

static int find_column(const struct prb_ring *ring, const char *name, uint32_t type)
{
	for (uint32_t i = 0; i < ring->header.column_count; i++)
		if (!strcmp(ring->columns[i].name, name) && ring->columns[i].type == type)
			return (int)i;
	return -1;
}

static double real_of(const struct prb_ring_item *row, int column)
{
	double value = 0;

	if (column >= 0 && !(row->nulls >> column & 1))
		memcpy(&value, &row->cells[column], sizeof(value));
	return isfinite(value) ? value : 0;
}

/** Rows of chunks in @p range. */
static struct prb_error *read_rows(struct prb_ring *ring, const struct prb_ring_range *range,
				   uint32_t pid, int64_t since, struct prb_last_step *ret)
{
	int step = find_column(ring, "step", PRB_RING_INTEGER);
	int duration = find_column(ring, "duration", PRB_RING_REAL);
	struct prb_ring_item row;
	bool more = true;

	if (step < 0)
		return NULL;
	for (;;) {
		PRB_TRY(prb_ring_next_chunk(ring, range, &more));
		if (!more)
			return NULL;
		while (prb_ring_next_row(ring, &row)) {
			if ((pid && row.pid != pid) || row.nulls >> step & 1)
				continue;
			if (row.time > since)
				ret->longest = fmax(ret->longest, real_of(&row, duration));
			if (row.time < ret->ended)
				continue;
			ret->ended = row.time;
			ret->number = (int64_t)row.cells[step];
		}
	}
}

/** The last row may lie in the last chunk but one: the last one may have just been begun. */
static struct prb_error *read_ring(struct prb_ring_files *files, size_t index, int64_t since,
				   struct prb_last_step *ret)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS, recent = {since, INT64_MAX};
	prb_auto_ring struct prb_ring *ring = NULL, *again = NULL;
	uint64_t chunk;

	PRB_TRY(prb_ring_files_open(files, index, &ring));
	if (ring->cold || !has_steps(ring))
		return NULL;
	chunk = ring->end >> ring->header.chunk_shift;
	prb_ring_skip(ring, chunk ? chunk - 1 : 0);
	PRB_TRY(read_rows(ring, &always, files->pid, since, ret));
	/* There may be more chunks since then, of many short steps. */
	PRB_TRY(prb_ring_files_open(files, index, &again));
	return read_rows(again, &recent, files->pid, since, ret);
}

struct prb_error *prb_last_step(struct prb_target *target, int64_t since, struct prb_last_step *ret)
{
	struct prb_ring_files files = {};
	struct prb_error *err = prb_ring_files_find(target, &files);

	*ret = (struct prb_last_step){.number = -1, .ended = INT64_MIN};
	for (size_t i = 0; !err && i < files.list.count; i++) {
		err = read_ring(&files, i, since, ret);
		if (err && err->code != PRB_ERROR_NOMEM)
			prb_error_destroy(prb_steal(&err));
	}
	prb_ring_files_deinit(&files);
	return err;
}
