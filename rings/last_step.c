/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/last_step.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "rings/files.h"
#include "rings/ring_private.h"

static bool has_steps(const struct prb_ring *ring)
{
	const struct prb_ring_header *h = &ring->header;

	return (!strcmp(h->schema, "main") && !strcmp(h->name, "training_logs")) ||
	       (!strcmp(h->schema, "python") && !strcmp(h->name, "torch_step_timing"));
}

static double real_of(const struct prb_ring_item *row, int column)
{
	double value = 0;

	if (column >= 0 && !(row->nulls >> column & 1))
		memcpy(&value, &row->cells[column], sizeof(value));
	return isfinite(value) ? value : 0;
}

/** Leaves out chunks before those after @p since, but not the last two, which have the last row:
 * the last chunk may have just been begun. */
static struct prb_error *skip_old(struct prb_ring *ring, int64_t since)
{
	const struct prb_ring_range recent = {since, INT64_MAX};
	uint64_t last = ring->end >> ring->header.chunk_shift, chunk = last ? last - 1 : 0;
	struct prb_ring_bounds bounds;
	bool there = true;

	while (chunk > ring->chunk) {
		PRB_TRY(prb_ring_read_bounds(ring, chunk - 1, &bounds, &there));
		if (!there || !prb_ring_bounds_meet(ring, chunk - 1, &bounds, &recent))
			break;
		chunk--;
	}
	prb_ring_skip(ring, chunk);
	return NULL;
}

static struct prb_error *read_rows(struct prb_ring *ring, uint32_t pid, int64_t since,
				   struct prb_last_step *ret)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS;
	int step = prb_ring_column(ring, "step", PRB_RING_INTEGER);
	int duration = prb_ring_column(ring, "duration", PRB_RING_REAL);
	struct prb_ring_item row;
	bool more = true;

	if (step < 0)
		return NULL;
	PRB_TRY(skip_old(ring, since));
	for (;;) {
		PRB_TRY(prb_ring_next_chunk(ring, &always, &more));
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

static struct prb_error *read_ring(struct prb_ring_files *files, size_t index, int64_t since,
				   struct prb_last_step *ret)
{
	prb_auto_ring struct prb_ring *ring = NULL;

	PRB_TRY(prb_ring_files_open(files, index, &ring));
	return ring->cold || !has_steps(ring) ? NULL : read_rows(ring, files->pid, since, ret);
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
