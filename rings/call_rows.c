/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/call_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "rings/rows.h"

enum { MOST = 1 << 20, NAME_MOST = 512 };
static const double longest_ms = 1e12; /* thirty years */

struct search {
	const char *name;
	struct prb_call_rows *found;
	int record, function, duration; /* positions of the columns */
};

static struct prb_error *begin(void *context, struct prb_ring *ring, bool *wanted)
{
	struct search *at = context;

	if (!prb_ring_is(ring, "python", "trace_event"))
		return NULL;
	at->record = prb_ring_column(ring, "record", PRB_RING_TEXT);
	at->function = prb_ring_column(ring, "name", PRB_RING_TEXT);
	at->duration = prb_ring_column(ring, "duration", PRB_RING_REAL);
	*wanted = at->record >= 0 && at->function >= 0 && at->duration >= 0;
	return NULL;
}

static bool is_of(const char *full, const char *name)
{
	size_t length = strlen(full), end = strlen(name);

	return !strcmp(full, name) || (length > end + 1 && full[length - end - 1] == '.' &&
				       !strcmp(full + length - end, name));
}

static struct prb_error *take(void *context, const struct prb_ring_item *row)
{
	const struct search *at = context;
	struct prb_call_row *slot;
	char text[NAME_MOST];
	double duration;

	prb_ring_copy_text(row, at->record, text, sizeof(text));
	if (strcmp(text, "span_end") || !prb_ring_has(row, at->duration) ||
	    at->found->list.count >= MOST)
		return NULL;
	prb_ring_copy_text(row, at->function, text, sizeof(text));
	duration = prb_ring_real(row, at->duration, 0);
	if (!is_of(text, at->name) || !(duration >= 0 && duration < longest_ms) || row->time < 0)
		return NULL;
	slot = prb_vec_push(&at->found->list);
	if (!slot)
		return prb_error_nomem();
	*slot = (struct prb_call_row){(pid_t)row->tid, row->time - (int64_t)(duration * 1e6),
				      row->time};
	return NULL;
}

static int by_length(const void *a, const void *b)
{
	const struct prb_call_row *x = a, *y = b;
	int64_t left = x->end - x->begin, right = y->end - y->begin;

	return left > right ? -1 : left < right;
}

struct prb_error *prb_call_rows_read(struct prb_target *target, const char *name,
				     struct prb_call_rows *ret)
{
	struct search search = {.name = name, .found = ret};

	*ret = (struct prb_call_rows){};
	PRB_TRY(prb_ring_visit(target, &(struct prb_ring_visit){begin, take, &search}));
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_length);
	return NULL;
}

void prb_call_rows_deinit(struct prb_call_rows *rows)
{
	prb_vec_free(&rows->list);
}
