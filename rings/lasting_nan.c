/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/lasting_nan.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "rings/files.h"
#include "rings/ring_private.h"

enum { MOST_EXPRESSIONS = 64 };

/* Positions of the columns; -1: there is none. */
struct columns {
	int name, function, number, step;
};

/* What fits; the text does not end with a NUL. */
static void copy_text(const struct prb_ring_item *row, int column, char *ret, size_t size)
{
	size_t length = 0;

	if (column >= 0 && row->texts[column])
		length = PRB_MIN(row->lengths[column], size - 1);
	if (length)
		memcpy(ret, row->texts[column], length);
	ret[length] = '\0';
}

/* The expression of the row; NULL: there are too many. */
static struct prb_lasting_nan *expression_of(struct prb_lasting_nans *nans,
					     const struct columns *at,
					     const struct prb_ring_item *row)
{
	struct prb_lasting_nan key = {}, *each;

	copy_text(row, at->name, key.name, sizeof(key.name));
	copy_text(row, at->function, key.function, sizeof(key.function));
	prb_vec_each (each, &nans->list)
		if (!strcmp(each->name, key.name) && !strcmp(each->function, key.function))
			return each;
	each = nans->list.count < MOST_EXPRESSIONS ? prb_vec_push(&nans->list) : NULL;
	if (each)
		*each = key;
	return each;
}

static void note(struct prb_lasting_nans *nans, const struct columns *at,
		 const struct prb_ring_item *row)
{
	struct prb_lasting_nan *expression;
	double number;

	/* A value that is no number says nothing. */
	if (row->nulls >> at->number & 1 || row->nulls >> at->step & 1)
		return;
	expression = expression_of(nans, at, row);
	if (!expression)
		return;
	memcpy(&number, &row->cells[at->number], sizeof(number));
	if (!isnan(number)) {
		expression->before += expression->count + 1;
		expression->count = 0;
	} else if (!expression->count++) {
		expression->step = (int64_t)row->cells[at->step];
	}
}

static struct prb_error *read_ring(struct prb_ring_files *files, size_t index,
				   struct prb_lasting_nans *ret)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS;
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_ring_item row;
	struct columns at;
	bool more = true;

	PRB_TRY(prb_ring_files_open(files, index, &ring));
	if (ring->cold || strcmp(ring->header.schema, "python") != 0 ||
	    strcmp(ring->header.name, "variables") != 0)
		return NULL;
	at = (struct columns){prb_ring_column(ring, "name", PRB_RING_TEXT),
			      prb_ring_column(ring, "function", PRB_RING_TEXT),
			      prb_ring_column(ring, "number", PRB_RING_REAL),
			      prb_ring_column(ring, "step", PRB_RING_INTEGER)};
	if (at.name < 0 || at.number < 0 || at.step < 0)
		return NULL;
	for (;;) {
		PRB_TRY(prb_ring_next_chunk(ring, &always, &more));
		if (!more)
			return NULL;
		while (prb_ring_next_row(ring, &row))
			if (!files->pid || row.pid == files->pid)
				note(ret, &at, &row);
	}
}

struct prb_error *prb_lasting_nans_find(struct prb_target *target, struct prb_lasting_nans *ret)
{
	struct prb_ring_files files = {};
	struct prb_error *err = prb_ring_files_find(target, &files);

	*ret = (struct prb_lasting_nans){};
	for (size_t i = 0; !err && i < files.list.count; i++) {
		err = read_ring(&files, i, ret);
		if (err && err->code != PRB_ERROR_NOMEM)
			prb_error_destroy(prb_steal(&err));
	}
	prb_ring_files_deinit(&files);
	return err;
}

void prb_lasting_nans_deinit(struct prb_lasting_nans *nans)
{
	prb_vec_free(&nans->list);
}
