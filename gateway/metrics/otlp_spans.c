/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Spans of one process. Rows of its ring are matched here: a beginning with its end, events with
 * the span that they are in, and each span with the outermost one, which names its trace. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/protobuf.h"
#include "gateway/metrics/otlp.h"
#include "lib/probing.h"

/* Fields of the messages, by their names in opentelemetry/proto. */
enum {
	REQUEST_RESOURCE_SPANS = 1,
	RESOURCE_SPANS_SCOPE_SPANS = 2,
	SCOPE_SPANS_SPANS = 2,
	SPAN_TRACE_ID = 1,
	SPAN_SPAN_ID = 2,
	SPAN_PARENT_ID = 4,
	SPAN_NAME = 5,
	SPAN_KIND = 6,
	SPAN_START = 7,
	SPAN_END = 8,
	SPAN_ATTRIBUTES = 9,
	SPAN_EVENTS = 11,
	EVENT_TIME = 1,
	EVENT_NAME = 2,
	EVENT_ATTRIBUTES = 3,
	KIND_INTERNAL = 1,
	MAX_DEPTH = 1000, /* of spans in each other */
};

/**
 * How far back beginnings are looked for, in seconds; a longer span lacks the data of its
 * beginning.
 */
#define LOOK_BACK "3600"

struct row {
	enum { BEGIN, EVENT, END } kind;
	uint64_t id, parent; /* 0: none; an event has the `id` of its span */
	double time, duration;
	int64_t tid, step; /* step -1: none */
	char *name, *attributes;
};

struct rows {
	PRB_VEC(struct row) list; /* by `id`, then in the order above */
	bool failed;
};

static char *copy(struct rows *rows, struct probing_statement *s, unsigned column)
{
	const char *text = probing_value_text(s, column, NULL);
	char *ret = text ? strdup(text) : NULL;

	rows->failed |= text && !ret;
	return ret;
}

static int take(void *context, struct probing_statement *s)
{
	struct rows *rows = context;
	struct row *row = prb_vec_push(&rows->list);
	const char *kind = probing_value_text(s, 0, NULL);

	if (!row) {
		rows->failed = true;
		return 1;
	}
	*row = (struct row){
		.kind = !strcmp(kind, "event")	    ? EVENT
			: !strcmp(kind, "span_end") ? END
						    : BEGIN,
		.id = (uint64_t)probing_value_integer(s, 1),
		.parent = (uint64_t)probing_value_integer(s, 2),
		.time = probing_value_real(s, 3),
		.duration = probing_value_real(s, 4) / 1e3,
		.tid = probing_value_integer(s, 5),
		.step = probing_value_kind(s, 6) == PROBING_NULL ? -1 : probing_value_integer(s, 6),
	};
	if (row->kind == EVENT)
		row->id = row->parent;
	row->name = copy(rows, s, 7);
	row->attributes = copy(rows, s, 8);
	return 0;
}

static void rows_deinit(struct rows *rows)
{
	struct row *row;

	prb_vec_each (row, &rows->list) {
		free(row->name);
		free(row->attributes);
	}
	prb_vec_free(&rows->list);
}

static int compare(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	if (one->kind != other->kind)
		return one->kind < other->kind ? -1 : 1;
	return one->time < other->time ? -1 : one->time > other->time;
}

/** The first row of that span, or NULL. */
static const struct row *find(const struct rows *rows, uint64_t id)
{
	size_t low = 0, high = rows->list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows->list.items[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rows->list.count && rows->list.items[low].id == id ? &rows->list.items[low]
									: NULL;
}

/** The outermost span that is known; it may have begun before what is known. */
static uint64_t root_of(const struct rows *rows, const struct row *span)
{
	uint64_t id = span->id, parent = span->parent;

	for (unsigned depth = 0; parent && depth < MAX_DEPTH; depth++) {
		const struct row *row = find(rows, parent);

		id = parent;
		parent = row && row->kind != EVENT ? row->parent : 0;
	}
	return id;
}

static void put_id(struct prb_str *s, unsigned field, uint64_t high, uint64_t low, size_t length)
{
	uint8_t bytes[16];

	for (unsigned i = 0; i < 8; i++) {
		bytes[i] = (uint8_t)(high >> (56 - 8 * i));
		bytes[8 + i] = (uint8_t)(low >> (56 - 8 * i));
	}
	prb_proto_bytes(s, field, bytes + sizeof(bytes) - length, length);
}

static void put_event(struct prb_str *s, const struct row *row)
{
	struct prb_str event = {};

	prb_proto_fixed64(&event, EVENT_TIME, (uint64_t)(row->time * 1e9));
	prb_otlp_put_utf8(&event, EVENT_NAME, row->name);
	prb_otlp_put_members(&event, EVENT_ATTRIBUTES, row->attributes);
	prb_proto_message(s, SPAN_EVENTS, &event);
}

/** @p mark tells apart traces of machines and of processes that had the same pid. */
static void put_span(struct prb_str *s, const struct rows *rows, const struct row *end,
		     uint64_t mark)
{
	struct prb_str span = {};

	put_id(&span, SPAN_TRACE_ID, mark, root_of(rows, end), 16);
	put_id(&span, SPAN_SPAN_ID, 0, end->id, 8);
	if (end->parent)
		put_id(&span, SPAN_PARENT_ID, 0, end->parent, 8);
	prb_otlp_put_utf8(&span, SPAN_NAME, end->name);
	prb_proto_number(&span, SPAN_KIND, KIND_INTERNAL);
	prb_proto_fixed64(&span, SPAN_START, (uint64_t)((end->time - end->duration) * 1e9));
	prb_proto_fixed64(&span, SPAN_END, (uint64_t)(end->time * 1e9));
	prb_otlp_put_integer(&span, SPAN_ATTRIBUTES, "thread.id", end->tid);
	if (end->step >= 0)
		prb_otlp_put_integer(&span, SPAN_ATTRIBUTES, "step", end->step);
	for (const struct row *row = find(rows, end->id); row && row <= end; row++) {
		if (row->kind == EVENT)
			put_event(&span, row);
		else
			prb_otlp_put_members(&span, SPAN_ATTRIBUTES, row->attributes);
	}
	prb_proto_message(s, SCOPE_SPANS_SPANS, &span);
}

static int is_there(void *context, struct probing_statement *s)
{
	(void)s;
	*(bool *)context = true;
	return 0;
}

static struct probing_error *read_rows(struct probing *session, double since, struct rows *rows)
{
	static const char TABLE[] = "SELECT 1 FROM information_schema.tables WHERE "
				    "table_schema = 'python' AND table_name = 'trace_event'";
	bool there = false;
	struct probing_error *err = probing_query(session, TABLE, is_there, &there);
	prb_auto_free char *sql = prb_format(
		"SELECT record, span_id, parent_id, timestamp, duration, tid, step, name, "
		"attributes FROM python.trace_event WHERE timestamp > %.6f - " LOOK_BACK,
		since);

	if (err || !there || !sql)
		return err;
	return probing_query(session, sql, take, rows);
}

static void put_rows(struct rows *rows, const struct prb_metrics_one *process,
		     const struct prb_otlp_time *time, struct prb_otlp *ret)
{
	struct prb_str resource = {}, scope = {};
	const struct row *row;
	size_t before = ret->spans;
	/* An id of a span has the pid in it. */
	uint64_t mark = (uint64_t)gethostid() << 32 | (uint32_t)process->start;

	qsort(rows->list.items, rows->list.count, sizeof(struct row), compare);
	prb_otlp_put_resource(&resource, &process->process);
	prb_otlp_put_scope(&scope);
	prb_vec_each (row, &rows->list) {
		if (row->kind != END || row->time <= time->since || row->time > time->until ||
		    !row->id)
			continue;
		put_span(&scope, rows, row, mark);
		ret->spans++;
	}
	prb_proto_message(&resource, RESOURCE_SPANS_SCOPE_SPANS, &scope);
	if (ret->spans > before)
		prb_proto_message(&ret->traces, REQUEST_RESOURCE_SPANS, &resource);
	prb_str_deinit(&resource);
}

static void destroy_session(struct probing **session)
{
	probing_destroy(*session);
}

struct prb_error *prb_otlp_put_spans(const struct prb_metrics_one *process,
				     const struct prb_otlp_time *time, struct prb_otlp *ret)
{
	char target[16];
	__attribute__((cleanup(destroy_session))) struct probing *session = NULL;
	__attribute__((cleanup(rows_deinit))) struct rows rows = {};
	struct probing_error *err = probing_create(&session);

	snprintf(target, sizeof(target), "%d", (int)process->process.pid);
	if (!err)
		err = probing_open(session, target, NULL);
	if (!err)
		err = probing_set(session, "probing.query.timeout", "30");
	/* An unreadable process was reported with its metrics. */
	if (err) {
		probing_error_destroy(err);
		return NULL;
	}
	err = read_rows(session, time->since, &rows);
	if (err) {
		struct prb_error *ours = prb_error_create(PRB_ERROR_FAILED, "spans of %s: %s",
							  target, probing_error_message(err));

		probing_error_destroy(err);
		return ours;
	}
	if (rows.failed)
		return prb_error_nomem();
	if (rows.list.count)
		put_rows(&rows, process, time, ret);
	return NULL;
}
