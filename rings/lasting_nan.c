/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/lasting_nan.h"

#include <math.h>
#include <string.h>

#include "rings/rows.h"

enum { MOST_EXPRESSIONS = 64 };

/* Positions of the columns; -1: there is none. */
struct search {
	struct prb_lasting_nans *found;
	int name, function, number, step;
};

/* The expression of the row; NULL: there are too many. */
static struct prb_lasting_nan *expression_of(const struct search *at,
					     const struct prb_ring_item *row)
{
	struct prb_lasting_nans *nans = at->found;
	struct prb_lasting_nan key = {}, *each;

	prb_ring_copy_text(row, at->name, key.name, sizeof(key.name));
	prb_ring_copy_text(row, at->function, key.function, sizeof(key.function));
	prb_vec_each (each, &nans->list)
		if (!strcmp(each->name, key.name) && !strcmp(each->function, key.function))
			return each;
	each = nans->list.count < MOST_EXPRESSIONS ? prb_vec_push(&nans->list) : NULL;
	if (each)
		*each = key;
	return each;
}

static struct prb_error *note(void *context, const struct prb_ring_item *row)
{
	const struct search *at = context;
	struct prb_lasting_nan *expression;

	/* A value that is no number says nothing. */
	if (!prb_ring_has(row, at->number) || !prb_ring_has(row, at->step))
		return NULL;
	expression = expression_of(at, row);
	if (!expression)
		return NULL;
	if (!isnan(prb_ring_real(row, at->number, NAN))) {
		expression->before += expression->count + 1;
		expression->count = 0;
	} else if (!expression->count++) {
		expression->step = (int64_t)row->cells[at->step];
	}
	return NULL;
}

static struct prb_error *begin(void *context, struct prb_ring *ring, bool *wanted)
{
	struct search *at = context;

	if (!prb_ring_is(ring, "python", "variables"))
		return NULL;
	at->name = prb_ring_column(ring, "name", PRB_RING_TEXT);
	at->function = prb_ring_column(ring, "function", PRB_RING_TEXT);
	at->number = prb_ring_column(ring, "number", PRB_RING_REAL);
	at->step = prb_ring_column(ring, "step", PRB_RING_INTEGER);
	*wanted = at->name >= 0 && at->number >= 0 && at->step >= 0;
	return NULL;
}

struct prb_error *prb_lasting_nans_find(struct prb_target *target, struct prb_lasting_nans *ret)
{
	struct search search = {.found = ret};

	*ret = (struct prb_lasting_nans){};
	return prb_ring_visit(target, &(struct prb_ring_visit){begin, note, &search});
}

void prb_lasting_nans_deinit(struct prb_lasting_nans *nans)
{
	prb_vec_free(&nans->list);
}
