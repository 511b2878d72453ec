/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/call_rows.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/str.h"
#include "dump/tasks/tasks.h"
#include "rings/rows.h"

enum { MOST = 1 << 20, NAME_MOST = 512, ATTRIBUTES_MOST = 4096 };
static const double longest_ms = 1e12; /* thirty years */

struct search {
	const char *name;
	struct prb_call_rows *found;
	int record, function, span, duration, attributes; /* positions of the columns */
};

static struct prb_error *begin(void *context, struct prb_ring *ring, bool *wanted)
{
	struct search *at = context;

	if (!prb_ring_is(ring, "python", "trace_event"))
		return NULL;
	at->record = prb_ring_column(ring, "record", PRB_RING_TEXT);
	at->function = prb_ring_column(ring, "name", PRB_RING_TEXT);
	at->span = prb_ring_column(ring, "span_id", PRB_RING_INTEGER);
	at->attributes = prb_ring_column(ring, "attributes", PRB_RING_TEXT);
	at->duration = prb_ring_column(ring, "duration", PRB_RING_REAL);
	*wanted = at->record >= 0 && at->function >= 0 && at->duration >= 0;
	return NULL;
}

bool prb_call_is_of(const char *full, const char *name)
{
	static const char locals[] = "<locals>.";
	char text[NAME_MOST];
	size_t length = 0;

	/* The agent's names are without it. */
	while (*full && length + 1 < sizeof(text)) {
		if (!strncmp(full, locals, strlen(locals)))
			full += strlen(locals);
		else
			text[length++] = *full++;
	}
	text[length] = '\0';
	for (const char *end = text; end; end = strchr(end, '.')) {
		end += *end == '.';
		if (!fnmatch(name, end, FNM_NOESCAPE))
			return true;
	}
	return false;
}

/* Calls of which both begin and end are kept have their arguments in the row of the begin. In JSON
 * no text has this, as its quotes are escaped. */
static bool is_late(const struct search *at, const struct prb_ring_item *row)
{
	char text[ATTRIBUTES_MOST];

	prb_ring_copy_text(row, at->attributes, text, sizeof(text));
	return strstr(text, "\"arguments\": {") || strstr(text, "{\"left_out\": ");
}

static struct prb_error *take(void *context, const struct prb_ring_item *row)
{
	const struct search *at = context;
	struct prb_call_row *slot;
	char text[NAME_MOST];
	const char *name;
	double duration;

	prb_ring_copy_text(row, at->record, text, sizeof(text));
	if (strcmp(text, "span_end") || !prb_ring_has(row, at->duration) ||
	    at->found->list.count >= MOST)
		return NULL;
	prb_ring_copy_text(row, at->function, text, sizeof(text));
	duration = prb_ring_real(row, at->duration, 0);
	if (!prb_call_is_of(text, at->name) || !(duration >= 0 && duration < longest_ms) ||
	    row->time < 0)
		return NULL;
	PRB_TRY(prb_pool_share(at->found->names, text, &name));
	slot = prb_vec_push(&at->found->list);
	if (!slot)
		return prb_error_nomem();
	*slot = (struct prb_call_row){
		.name = name,
		.span = prb_ring_has(row, at->span) ? (int64_t)row->cells[at->span] : -1,
		.tid = (pid_t)row->tid,
		.begin = row->time - (int64_t)(duration * 1e6),
		.end = row->time,
		.late = is_late(at, row),
	};
	return NULL;
}

/* The tids of threads in our pid namespace, by those in the target's. */
static struct prb_error *list_threads(struct prb_target *target, struct prb_number_map *ret)
{
	prb_auto_str struct prb_str tids = {};

	PRB_TRY(prb_target_list(target, &tids, "task"));
	for (const char *at = prb_str_text(&tids); *at;) {
		char *end;
		pid_t tid = (pid_t)strtol(at, &end, 10);

		if (!prb_number_map_put(ret, (uint64_t)prb_task_inner_tid(target, tid),
					(size_t)tid))
			return prb_error_nomem();
		at = *end ? end + 1 : end;
	}
	return NULL;
}

/* Rings have the tids of the target's pid namespace: there, a thread that has ended is unknown. */
static struct prb_error *take_our_tids(struct prb_target *target, struct prb_call_rows *rows)
{
	__attribute__((cleanup(prb_number_map_deinit))) struct prb_number_map threads = {};
	struct prb_call_row *row;

	if (!rows->list.count || prb_task_inner_tid(target, target->pid) == target->pid)
		return NULL;
	PRB_TRY(list_threads(target, &threads));
	prb_vec_each (row, &rows->list) {
		size_t ours = 0;

		prb_number_map_get(&threads, (uint64_t)row->tid, &ours);
		row->tid = (pid_t)ours;
	}
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
	PRB_TRY(prb_pool_create(&ret->names));
	PRB_TRY(prb_ring_visit(target, &(struct prb_ring_visit){begin, take, &search}));
	PRB_TRY(take_our_tids(target, ret));
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_length);
	return NULL;
}

void prb_call_rows_deinit(struct prb_call_rows *rows)
{
	prb_vec_free(&rows->list);
	prb_pool_destroy(prb_steal(&rows->names));
}
