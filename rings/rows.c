/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/rows.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "rings/files.h"
#include "rings/ring_private.h"

bool prb_ring_is(const struct prb_ring *ring, const char *schema, const char *name)
{
	return !strcmp(ring->header.schema, schema) && !strcmp(ring->header.name, name);
}

bool prb_ring_has(const struct prb_ring_item *row, int column)
{
	return column >= 0 && !(row->nulls >> column & 1);
}

double prb_ring_real(const struct prb_ring_item *row, int column, double none)
{
	if (prb_ring_has(row, column))
		memcpy(&none, &row->cells[column], sizeof(none));
	return none;
}

struct prb_error *prb_ring_skip_before(struct prb_ring *ring, int64_t since)
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

void prb_ring_copy_text(const struct prb_ring_item *row, int column, char *ret, size_t size)
{
	size_t length = 0;

	if (column >= 0 && row->texts[column])
		length = PRB_MIN((size_t)row->lengths[column], size - 1);
	if (length)
		memcpy(ret, row->texts[column], length);
	ret[length] = '\0';
}

static struct prb_error *read_ring(struct prb_ring_files *files, size_t index,
				   const struct prb_ring_visit *visit)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS;
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_ring_item row;
	bool wanted = false, more = true;

	PRB_TRY(prb_ring_files_open(files, index, &ring));
	if (!ring->cold)
		PRB_TRY(visit->begin(visit->context, ring, &wanted));
	while (wanted) {
		PRB_TRY(prb_ring_next_chunk(ring, &always, &more));
		if (!more)
			return NULL;
		while (prb_ring_next_row(ring, &row))
			if (!files->pid || row.pid == files->pid)
				PRB_TRY(visit->row(visit->context, &row));
	}
	return NULL;
}

struct prb_error *prb_ring_visit(struct prb_target *target, const struct prb_ring_visit *visit)
{
	struct prb_ring_files files = {};
	struct prb_error *err = prb_ring_files_find(target, &files);

	for (size_t i = 0; !err && i < files.list.count; i++) {
		err = read_ring(&files, i, visit);
		if (err && err->code != PRB_ERROR_NOMEM)
			prb_error_destroy(prb_steal(&err));
	}
	prb_ring_files_deinit(&files);
	return err;
}

size_t prb_ring_rows_keep(void *rows, size_t count, size_t most, size_t size)
{
	const size_t left = most - most / 2;

	if (count < most)
		return count;
	memmove(rows, (char *)rows + (count - left) * size, left * size);
	return left;
}
