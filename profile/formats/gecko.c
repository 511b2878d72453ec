/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The format that Firefox writes, for https://profiler.firefox.com: version 31 of it.
 *
 * That viewer counts samples, each of which is worth one interval. So a run is as many samples as
 * intervals of its weight; what is left over of an interval is carried to the next run.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "profile/formats/format.h"
#include "profile/recording/order.h"

enum { VERSION = 31, MOST_SAMPLES = 400000, UNKNOWN = UINT32_MAX };
static const int64_t shortest_interval = 1000000;

/* Numbers in `meta.categories`, by kind of function. */
static const struct {
	const char *name, *colour;
} categories[] = {
	[PRB_FUNCTION_PYTHON] = {"Python", "yellow"},
	[PRB_FUNCTION_NATIVE] = {"Native", "blue"},
	[PRB_FUNCTION_NOTE] = {"Other", "grey"},
	[PRB_FUNCTION_TASK] = {"Other", "grey"},
};

struct writer {
	const struct prb_recording *recording;
	const struct prb_profile_choice *choice;
	struct prb_sink *sink;
	struct prb_json json;
	struct prb_order order;
	int64_t interval;
	uint32_t *folded; /* stacks */
	/* Numbers in the tables of the present thread, UNKNOWN for what is not in them. */
	uint32_t *stack_numbers, *place_numbers;
	/* The contents of these tables. */
	PRB_VEC(uint32_t) stacks;
	PRB_VEC(uint32_t) places;
};

static void writer_deinit(struct writer *w)
{
	prb_order_deinit(&w->order);
	free(w->folded);
	free(w->stack_numbers);
	free(w->place_numbers);
	prb_vec_free(&w->stacks);
	prb_vec_free(&w->places);
}

static struct prb_error *writer_init(struct writer *w)
{
	const struct prb_tree *tree = w->recording->tree;
	size_t places = prb_place_count(tree, w->choice->lines);
	const struct prb_run *run;
	int64_t weight = 0;

	PRB_TRY(prb_fold_stacks(tree, w->choice->lines, &w->folded));
	PRB_TRY(prb_order_make(w->recording, &w->order));
	w->stack_numbers = calloc(tree->stacks.count + 1, sizeof(*w->stack_numbers));
	w->place_numbers = calloc(places + 1, sizeof(*w->place_numbers));
	if (!w->stack_numbers || !w->place_numbers)
		return prb_error_nomem();
	for (size_t i = 0; i < tree->stacks.count; i++)
		w->stack_numbers[i] = UNKNOWN;
	for (size_t i = 0; i < places; i++)
		w->place_numbers[i] = UNKNOWN;
	prb_vec_each (run, &w->recording->runs)
		weight += prb_run_weight(run, w->choice);
	w->interval = PRB_MAX(shortest_interval, weight / MOST_SAMPLES);
	return NULL;
}

static double milliseconds(int64_t ns)
{
	return (double)ns / 1e6;
}

/* Puts the stack into the tables of the thread, with its callers, which come before it. */
static struct prb_error *know_stack(struct writer *w, uint32_t stack)
{
	const struct prb_tree *tree = w->recording->tree;
	prb_auto_free uint32_t *chain = NULL;
	uint32_t depth = tree->stacks.items[stack].depth, count = 0;

	if (!stack || w->stack_numbers[stack] != UNKNOWN)
		return NULL;
	chain = calloc(depth, sizeof(*chain));
	if (!chain)
		return prb_error_nomem();
	for (uint32_t at = stack; at && w->stack_numbers[at] == UNKNOWN;
	     at = w->folded[tree->stacks.items[at].parent])
		chain[count++] = at;
	while (count-- > 0) {
		uint32_t place = prb_place_of(tree, w->choice->lines, chain[count]), *slot;

		w->stack_numbers[chain[count]] = (uint32_t)w->stacks.count;
		slot = prb_vec_push(&w->stacks);
		if (!slot)
			return prb_error_nomem();
		*slot = chain[count];
		if (w->place_numbers[place] != UNKNOWN)
			continue;
		w->place_numbers[place] = (uint32_t)w->places.count;
		slot = prb_vec_push(&w->places);
		if (!slot)
			return prb_error_nomem();
		*slot = place;
	}
	return NULL;
}

static void forget_stacks(struct writer *w)
{
	const uint32_t *number;

	prb_vec_each (number, &w->stacks)
		w->stack_numbers[*number] = UNKNOWN;
	prb_vec_each (number, &w->places)
		w->place_numbers[*number] = UNKNOWN;
	w->stacks.count = w->places.count = 0;
}

static void put_schema(struct writer *w, const char *const *columns)
{
	prb_json_open(&w->json, "schema", '{');
	for (int i = 0; columns[i]; i++)
		prb_json_integer(&w->json, columns[i], i);
	prb_json_close(&w->json, '}');
	prb_json_open(&w->json, "data", '[');
}

static void end_table(struct writer *w)
{
	prb_json_close(&w->json, ']');
	prb_json_close(&w->json, '}');
}

/* As many samples as the run is worth, evenly over its time. */
static struct prb_error *put_run(struct writer *w, const struct prb_run *run, int64_t *left)
{
	uint32_t stack = w->folded[run->stack];
	int64_t count;

	*left += prb_run_weight(run, w->choice);
	count = *left / w->interval;
	*left -= count * w->interval;
	if (count)
		PRB_TRY(know_stack(w, stack));
	for (int64_t i = 0; i < count; i++) {
		double part = ((double)i + 0.5) / (double)count;

		prb_json_open(&w->json, NULL, '[');
		prb_json_integer(&w->json, NULL, w->stack_numbers[stack]);
		prb_json_real(&w->json, NULL,
			      milliseconds(run->begin) + part * milliseconds(run->wall), 3);
		prb_json_integer(&w->json, NULL, 0);
		prb_json_integer(&w->json, NULL, run->cpu / count);
		prb_json_close(&w->json, ']');
		PRB_TRY(prb_sink_flush(w->sink, false));
	}
	return NULL;
}

static struct prb_error *put_samples(struct writer *w, uint32_t thread)
{
	static const char *const columns[] = {"stack", "time", "eventDelay", "threadCPUDelta",
					      NULL};
	int64_t left = w->interval / 2;

	prb_json_open(&w->json, "samples", '{');
	put_schema(w, columns);
	prb_order_each(i, &w->order, thread)
		PRB_TRY(put_run(w, &w->recording->runs.items[*i], &left));
	end_table(w);
	return NULL;
}

static struct prb_error *put_stacks(struct writer *w)
{
	static const char *const columns[] = {"prefix", "frame", NULL};
	const struct prb_tree *tree = w->recording->tree;
	const uint32_t *stack;

	prb_json_open(&w->json, "stackTable", '{');
	put_schema(w, columns);
	prb_vec_each (stack, &w->stacks) {
		uint32_t caller = w->folded[tree->stacks.items[*stack].parent];
		uint32_t place = prb_place_of(tree, w->choice->lines, *stack);

		prb_json_open(&w->json, NULL, '[');
		prb_json_natural(&w->json, NULL, caller ? (int64_t)w->stack_numbers[caller] : -1);
		prb_json_integer(&w->json, NULL, w->place_numbers[place]);
		prb_json_close(&w->json, ']');
		PRB_TRY(prb_sink_flush(w->sink, false));
	}
	end_table(w);
	return NULL;
}

/* The text of a frame has the number of the frame. */
static struct prb_error *put_frames(struct writer *w)
{
	static const char *const columns[] = {"location",	"relevantForJS", "innerWindowID",
					      "implementation", "line",		 "column",
					      "category",	"subcategory",	 NULL};

	prb_json_open(&w->json, "frameTable", '{');
	put_schema(w, columns);
	for (uint32_t i = 0; i < w->places.count; i++) {
		struct prb_place place =
			prb_place_get(w->recording->tree, w->choice->lines, w->places.items[i]);

		prb_json_open(&w->json, NULL, '[');
		prb_json_integer(&w->json, NULL, i);
		prb_json_bool(&w->json, NULL, false);
		prb_json_null(&w->json, NULL);
		prb_json_null(&w->json, NULL);
		prb_json_natural(&w->json, NULL, place.line > 0 ? place.line : -1);
		prb_json_null(&w->json, NULL);
		prb_json_integer(&w->json, NULL, place.function->kind);
		prb_json_integer(&w->json, NULL, 0);
		prb_json_close(&w->json, ']');
		PRB_TRY(prb_sink_flush(w->sink, false));
	}
	end_table(w);
	return NULL;
}

static struct prb_error *put_strings(struct writer *w)
{
	const uint32_t *number;

	prb_json_open(&w->json, "stringTable", '[');
	prb_vec_each (number, &w->places) {
		prb_auto_str struct prb_str label = {};

		struct prb_place place =
			prb_place_get(w->recording->tree, w->choice->lines, *number);

		/* An address is what the viewer looks up by `libs`. */
		if (prb_function_lacks_name(place.function) && prb_function_address(place.function))
			prb_str_printf(&label, "0x%" PRIx64, prb_function_address(place.function));
		else
			prb_profile_label(&label, place);
		prb_json_text(&w->json, NULL, prb_str_text(&label));
		PRB_TRY(prb_sink_flush(w->sink, false));
	}
	prb_json_close(&w->json, ']');
	return NULL;
}

static void put_markers(struct writer *w)
{
	static const char *const columns[] = {"name",	  "startTime", "endTime", "phase",
					      "category", "data",      NULL};

	prb_json_open(&w->json, "markers", '{');
	put_schema(w, columns);
	end_table(w);
}

static struct prb_error *put_thread(struct writer *w, uint32_t number)
{
	const struct prb_profile_thread *thread = &w->recording->threads.items[number];
	const char *command = prb_recording_command_line(w->recording, thread->process);
	pid_t pid = prb_recording_pid(w->recording, thread->process);
	bool is_main = thread->tid == pid;

	prb_json_open(&w->json, NULL, '{');
	/* A process is one to the viewer only if it has a thread of this name. */
	prb_json_text(&w->json, "name", is_main ? "GeckoMain" : prb_profile_thread_name(thread));
	prb_json_text(&w->json, "processType", "default");
	prb_json_text(&w->json, "processName", command ? command : "python");
	prb_json_integer(&w->json, "registerTime", 0);
	prb_json_null(&w->json, "unregisterTime");
	prb_json_integer(&w->json, "tid", thread->tid);
	prb_json_integer(&w->json, "pid", pid);
	put_markers(w);
	PRB_TRY(put_samples(w, number));
	PRB_TRY(put_stacks(w));
	PRB_TRY(put_frames(w));
	PRB_TRY(put_strings(w));
	prb_json_close(&w->json, '}');
	forget_stacks(w);
	return NULL;
}

static void put_categories(struct writer *w)
{
	prb_json_open(&w->json, "categories", '[');
	for (size_t i = 0; i < PRB_ARRAY_SIZE(categories); i++) {
		prb_json_open(&w->json, NULL, '{');
		prb_json_text(&w->json, "name", categories[i].name);
		prb_json_text(&w->json, "color", categories[i].colour);
		prb_json_open(&w->json, "subcategories", '[');
		prb_json_text(&w->json, NULL, "Other");
		prb_json_close(&w->json, ']');
		prb_json_close(&w->json, '}');
	}
	prb_json_close(&w->json, ']');
}

static void put_meta(struct writer *w)
{
	const struct prb_recording *r = w->recording;

	prb_json_open(&w->json, "meta", '{');
	prb_json_integer(&w->json, "version", VERSION);
	prb_json_real(&w->json, "startTime", r->started * 1e3, 3);
	prb_json_null(&w->json, "shutdownTime");
	prb_json_real(&w->json, "profilingStartTime", 0, 0);
	prb_json_real(&w->json, "profilingEndTime", milliseconds(r->duration), 3);
	prb_json_real(&w->json, "interval", milliseconds(w->interval), 6);
	prb_json_integer(&w->json, "stackwalk", 1);
	prb_json_integer(&w->json, "debug", 0);
	prb_json_integer(&w->json, "gcpoison", 0);
	prb_json_integer(&w->json, "asyncstack", 0);
	prb_json_integer(&w->json, "processType", 0);
	prb_json_text(&w->json, "product", r->command ? r->command : "python");
	prb_json_text(&w->json, "misc", "probing " PRB_VERSION);
	prb_json_text(&w->json, "platform", "Linux");
	put_categories(w);
	prb_json_open(&w->json, "sampleUnits", '{');
	prb_json_text(&w->json, "time", "ms");
	prb_json_text(&w->json, "eventDelay", "ms");
	prb_json_text(&w->json, "threadCPUDelta", "ns");
	prb_json_close(&w->json, '}');
	prb_json_open(&w->json, "markerSchema", '[');
	prb_json_close(&w->json, ']');
	prb_json_close(&w->json, '}');
}

static void put_empty(struct writer *w, const char *key)
{
	prb_json_open(&w->json, key, '[');
	prb_json_close(&w->json, ']');
}

/* 32 digits of the build-id, its first parts in the other byte order, and an age: a GUID of
 * Microsoft's. */
static void put_breakpad_id(struct writer *w, const char *build_id)
{
	static const int order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	enum { BYTES = PRB_ARRAY_SIZE(order) };
	char id[2 * BYTES + 2];
	size_t length = strlen(build_id);

	for (size_t i = 0; i < 2 * BYTES; i++) {
		size_t at = 2 * (size_t)order[i / 2] + i % 2;

		id[i] = at < length ? (char)toupper((unsigned char)build_id[at]) : '0';
	}
	id[2 * BYTES] = '0';
	id[2 * BYTES + 1] = '\0';
	prb_json_text(&w->json, "breakpadId", *build_id ? id : "");
	prb_json_text(&w->json, "codeId", build_id);
}

/* Each as if all of it were mapped, so that addresses in the file are those behind its start. */
static void put_libraries(struct writer *w)
{
	struct prb_tree_image *const *image;

	prb_json_open(&w->json, "libs", '[');
	prb_vec_each (image, &w->recording->tree->images) {
		const char *path = (*image)->path, *name = prb_tree_short_path(path);

		prb_json_open(&w->json, NULL, '{');
		prb_json_integer(&w->json, "start", (int64_t)prb_image_base(*image));
		prb_json_integer(
			&w->json, "end",
			(int64_t)(prb_image_base(*image) + (*image)->address + (*image)->size));
		prb_json_integer(&w->json, "offset", 0);
		prb_json_text(&w->json, "name", name);
		prb_json_text(&w->json, "path", path);
		prb_json_text(&w->json, "debugName", name);
		prb_json_text(&w->json, "debugPath", path);
		put_breakpad_id(w, (*image)->build_id);
		prb_json_null(&w->json, "arch");
		prb_json_close(&w->json, '}');
	}
	prb_json_close(&w->json, ']');
}

static struct prb_error *write_gecko(const struct prb_recording *recording,
				     const struct prb_profile_choice *choice, struct prb_sink *sink)
{
	__attribute__((cleanup(writer_deinit))) struct writer w = {
		recording, choice, sink, {&sink->text}};

	PRB_TRY(writer_init(&w));
	prb_json_open(&w.json, NULL, '{');
	put_meta(&w);
	put_libraries(&w);
	prb_json_open(&w.json, "threads", '[');
	for (uint32_t i = 0; i < recording->threads.count; i++)
		if (!choice->threads || choice->threads[i])
			PRB_TRY(put_thread(&w, i));
	prb_json_close(&w.json, ']');
	put_empty(&w, "processes");
	put_empty(&w, "pausedRanges");
	prb_json_close(&w.json, '}');
	prb_str_putc(&sink->text, '\n');
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_gecko = {
	.name = "gecko",
	.extensions = {".gecko.json"},
	.does = "for https://profiler.firefox.com",
	.write = write_gecko,
};
