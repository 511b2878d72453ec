/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the text. */
#include "profile/kineto/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json_read.h"
#include "base/str.h"
#include "profile/kineto/private.h"

enum { MOST_EVENTS = 4000000, MOST_TEXT = 512 };
/** A day: sums of all events stay far from the end of the type. */
static const int64_t longest = (int64_t)86400 * 1000000000;
static const int64_t highest = (int64_t)1 << 53;

/** An event as it is read. */
struct reading {
	struct prb_json_reader r;
	struct prb_kineto *to;
	struct prb_str key, word, category, name, shapes, values;
	struct prb_kineto_event event;
	bool complete, has_time;
};

static struct prb_error *share(struct prb_pool *pool, struct prb_str *text, const char **ret)
{
	if (text->length > MOST_TEXT)
		prb_str_truncate(text, MOST_TEXT);
	if (text->failed)
		return prb_error_nomem();
	return prb_pool_share(pool, prb_str_text(text), ret);
}

static void read_span(struct reading *in, struct prb_str *ret)
{
	struct prb_json_span span;

	prb_str_truncate(ret, 0);
	if (prb_json_skip(&in->r, &span))
		prb_str_append(ret, span.text, span.length);
}

static void read_number(struct reading *in, int64_t *ret)
{
	int64_t value;

	if (prb_json_read_scaled(&in->r, 1, &value) && value >= 0 && value < highest)
		*ret = value;
}

static void read_arguments(struct reading *in)
{
	struct prb_kineto_event *e = &in->event;

	if (!prb_json_enter(&in->r, '{'))
		return;
	while (prb_json_member(&in->r, &in->word)) {
		const char *key = prb_str_text(&in->word);

		if (!strcmp(key, "Input Dims") || !strcmp(key, "Input dims"))
			read_span(in, &in->shapes);
		else if (!strcmp(key, "Concrete Inputs"))
			read_span(in, &in->values);
		else if (!strcmp(key, "Sequence number"))
			read_number(in, &e->sequence);
		else if (!strcmp(key, "correlation"))
			read_number(in, &e->correlation);
		else if (!strcmp(key, "device"))
			read_number(in, &e->device);
		else if (!strcmp(key, "stream"))
			read_number(in, &e->thread);
		else
			prb_json_skip(&in->r, NULL);
	}
}

static void read_thread(struct reading *in)
{
	int64_t value;

	/* Tracks of other things have names for it. A stream in the arguments is surer. */
	if (prb_json_read_scaled(&in->r, 1, &value) && in->event.thread < 0)
		in->event.thread = value;
}

static void read_member(struct reading *in)
{
	const char *key = prb_str_text(&in->key);
	struct prb_kineto_event *e = &in->event;

	if (!strcmp(key, "ph"))
		in->complete = prb_json_read_text(&in->r, &in->word) &&
			       !strcmp(prb_str_text(&in->word), "X");
	else if (!strcmp(key, "cat"))
		prb_json_read_text(&in->r, &in->category);
	else if (!strcmp(key, "name"))
		prb_json_read_text(&in->r, &in->name);
	else if (!strcmp(key, "ts"))
		in->has_time = prb_json_read_scaled(&in->r, 1000, &e->begin);
	else if (!strcmp(key, "dur"))
		prb_json_read_scaled(&in->r, 1000, &e->duration);
	else if (!strcmp(key, "tid"))
		read_thread(in);
	else if (!strcmp(key, "args"))
		read_arguments(in);
	else
		prb_json_skip(&in->r, NULL);
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/** Of a category that is known; false: it is of no interest. */
static bool kind_of(const char *category, const char *name, enum prb_kineto_kind *ret)
{
	static const struct {
		const char *category;
		enum prb_kineto_kind kind;
	} kinds[] = {
		{"cpu_op", PRB_KINETO_OP},	     {"user_annotation", PRB_KINETO_RANGE},
		{"cuda_runtime", PRB_KINETO_LAUNCH}, {"cuda_driver", PRB_KINETO_LAUNCH},
		{"kernel", PRB_KINETO_KERNEL},	     {"gpu_memcpy", PRB_KINETO_COPY},
		{"gpu_memset", PRB_KINETO_SET},	     {"Operator", PRB_KINETO_OP},
		{"Runtime", PRB_KINETO_LAUNCH},	     {"Kernel", PRB_KINETO_KERNEL},
		{"Memcpy", PRB_KINETO_COPY},	     {"Memset", PRB_KINETO_SET},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].category, category) != 0)
			continue;
		*ret = kinds[i].kind;
		/* Of the two functions that make ranges, the faster one makes operators. */
		if (*ret == PRB_KINETO_OP && begins(name, "probing step "))
			*ret = PRB_KINETO_RANGE;
		if ((*ret == PRB_KINETO_OP || *ret == PRB_KINETO_RANGE) && begins(name, "module "))
			*ret = PRB_KINETO_MODULE;
		if (*ret == PRB_KINETO_KERNEL &&
		    (begins(name, "nccl") || begins(name, "ncclDevKernel")))
			*ret = PRB_KINETO_COLLECTIVE;
		return true;
	}
	return false;
}

static struct prb_error *keep(struct reading *in)
{
	struct prb_kineto_event *e = &in->event, *place;

	if (in->to->events.count >= MOST_EVENTS || e->begin < 0 || e->duration < 0 ||
	    e->duration > longest) {
		in->to->skipped++;
		return NULL;
	}
	PRB_TRY(share(in->to->pool, &in->name, &e->name));
	if (in->shapes.length)
		PRB_TRY(share(in->to->pool, &in->shapes, &e->shapes));
	if (in->values.length)
		PRB_TRY(share(in->to->pool, &in->values, &e->values));
	if (e->kind == PRB_KINETO_MODULE)
		PRB_TRY(prb_kineto_take_apart(in->to, e));
	place = prb_vec_push(&in->to->events);
	if (!place)
		return prb_error_nomem();
	*place = *e;
	/* Of two that begin and end together, the caller is written first. */
	place->parent = (uint32_t)in->to->events.count;
	return NULL;
}

static struct prb_error *read_event(struct reading *in)
{
	in->event = (struct prb_kineto_event){.thread = -1,
					      .device = -1,
					      .correlation = -1,
					      .sequence = -1,
					      .parent = PRB_KINETO_NONE,
					      .module = PRB_KINETO_NONE,
					      .step = -1};
	in->complete = in->has_time = false;
	prb_str_truncate(&in->name, 0);
	prb_str_truncate(&in->category, 0);
	prb_str_truncate(&in->shapes, 0);
	prb_str_truncate(&in->values, 0);
	if (!prb_json_enter(&in->r, '{'))
		return NULL;
	while (prb_json_member(&in->r, &in->key))
		read_member(in);
	if (in->r.failed || !in->complete || !in->has_time ||
	    !kind_of(prb_str_text(&in->category), prb_str_text(&in->name), &in->event.kind))
		return NULL;
	return keep(in);
}

static struct prb_error *read_all(struct reading *in, bool *found)
{
	*found = false;
	if (!prb_json_enter(&in->r, '{'))
		return NULL;
	while (prb_json_member(&in->r, &in->key)) {
		if (strcmp(prb_str_text(&in->key), "traceEvents") != 0) {
			prb_json_skip(&in->r, NULL);
			continue;
		}
		if (!prb_json_enter(&in->r, '['))
			continue;
		*found = true;
		while (prb_json_item(&in->r))
			PRB_TRY(read_event(in));
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct prb_kineto_event *one = a, *other = b;

	if (one->begin != other->begin)
		return one->begin < other->begin ? -1 : 1;
	if (one->duration != other->duration)
		return one->duration > other->duration ? -1 : 1;
	return one->parent < other->parent ? -1 : one->parent > other->parent;
}

/** Times count from the first event: the clock's own are of no use to anybody. */
static void settle(struct prb_kineto *trace)
{
	struct prb_kineto_event *e;
	int64_t first, last = INT64_MAX;
	size_t count = 0;

	if (!trace->events.count)
		return;
	qsort(trace->events.items, trace->events.count, sizeof(*trace->events.items), compare);
	first = trace->events.items[0].begin;
	prb_vec_each (e, &trace->events) {
		e->begin -= first;
		e->parent = PRB_KINETO_NONE;
		if (e->begin <= longest)
			count++;
		last = e->begin;
	}
	trace->skipped += last > longest ? trace->events.count - count : 0;
	trace->events.count = count;
}

struct prb_error *prb_kineto_read(const char *text, size_t length, struct prb_kineto *ret)
{
	struct reading in = {.r = {text, text + length}, .to = ret};
	struct prb_error *err;
	bool found = false;

	*ret = (struct prb_kineto){};
	err = prb_pool_create(&ret->pool);
	if (!err)
		err = read_all(&in, &found);
	if (!err && (!found || in.r.failed))
		err = prb_error_create(PRB_ERROR_BAD_DATA,
				       "what torch's profiler has written is not understood");
	prb_str_deinit(&in.key);
	prb_str_deinit(&in.word);
	prb_str_deinit(&in.category);
	prb_str_deinit(&in.name);
	prb_str_deinit(&in.shapes);
	prb_str_deinit(&in.values);
	if (!err)
		settle(ret);
	return err;
}

void prb_kineto_deinit(struct prb_kineto *trace)
{
	prb_vec_free(&trace->events);
	prb_vec_free(&trace->modules);
	prb_pool_destroy(trace->pool);
	*trace = (struct prb_kineto){};
}
