/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file format of speedscope: one sampled profile for each thread, its runs in order of time. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/recording/fold.h"
#include "profile/formats/format.h"
#include "profile/recording/order.h"

struct writer {
	const struct prb_recording *recording;
	const struct prb_profile_choice *choice;
	struct prb_sink *sink;
	struct prb_json json;
	uint32_t *folded; /* stacks */
	struct prb_order order;
};

static void writer_deinit(struct writer *w)
{
	free(w->folded);
	prb_order_deinit(&w->order);
}

static struct prb_error *put_frames(struct writer *w)
{
	const struct prb_tree *tree = w->recording->tree;
	bool lines = w->choice->lines;

	prb_json_open(&w->json, "shared", '{');
	prb_json_open(&w->json, "frames", '[');
	for (uint32_t i = 0; i < prb_place_count(tree, lines); i++) {
		struct prb_place place = prb_place_get(tree, lines, i);
		const struct prb_tree_function *f = place.function;
		prb_auto_str struct prb_str name = {};

		prb_str_puts(&name, f->name);
		if (f->module)
			prb_str_printf(&name, " [%s]", prb_tree_short_path(f->module));
		prb_json_open(&w->json, NULL, '{');
		prb_json_text(&w->json, "name", prb_str_text(&name));
		if (prb_function_file(f))
			prb_json_text(&w->json, "file", prb_function_file(f));
		if (f->file && place.line > 0)
			prb_json_integer(&w->json, "line", place.line);
		prb_json_close(&w->json, '}');
		PRB_TRY(prb_sink_flush(w->sink, false));
	}
	prb_json_close(&w->json, ']');
	prb_json_close(&w->json, '}');
	return NULL;
}

static struct prb_error *put_sample(struct writer *w, uint32_t stack)
{
	const struct prb_tree *tree = w->recording->tree;
	uint32_t depth = tree->stacks.items[stack].depth;
	prb_auto_free uint32_t *places = NULL;

	PRB_TRY(prb_fold_places(tree, w->choice->lines, stack, &places));
	prb_json_open(&w->json, NULL, '[');
	for (uint32_t i = 0; i < depth; i++)
		prb_json_integer(&w->json, NULL, places[i]);
	prb_json_close(&w->json, ']');
	return prb_sink_flush(w->sink, false);
}

/* The thread's run from its @at on that weighs something; NULL if there is none. */
static const struct prb_run *next_run(const struct writer *w, uint32_t thread, size_t *at)
{
	size_t begin = w->order.begin[thread], count = w->order.begin[thread + 1] - begin;

	while (*at < count) {
		const struct prb_run *run =
			&w->recording->runs.items[w->order.runs[begin + (*at)++]];

		if (prb_run_weight(run, w->choice) > 0)
			return run;
	}
	return NULL;
}

static int64_t weight_of(const struct writer *w, uint32_t thread)
{
	const struct prb_run *run;
	int64_t sum = 0;

	for (size_t at = 0; (run = next_run(w, thread, &at));)
		sum += prb_run_weight(run, w->choice);
	return sum;
}

/* Neighbours with the same stack are one; both lists are made in the same way. */
static struct prb_error *put_samples(struct writer *w, uint32_t thread, bool weights)
{
	const struct prb_run *run, *next;
	size_t at = 0;
	int64_t weight = 0;

	for (run = next_run(w, thread, &at); run; run = next) {
		next = next_run(w, thread, &at);
		weight += prb_run_weight(run, w->choice);
		if (next && w->folded[next->stack] == w->folded[run->stack])
			continue;
		if (weights)
			prb_json_integer(&w->json, NULL, weight);
		else
			PRB_TRY(put_sample(w, w->folded[run->stack]));
		weight = 0;
	}
	return NULL;
}

static void open_profile(struct writer *w, const char *name, int64_t weight)
{
	prb_json_open(&w->json, NULL, '{');
	prb_json_text(&w->json, "type", "sampled");
	prb_json_text(&w->json, "name", name);
	prb_json_text(&w->json, "unit", "nanoseconds");
	prb_json_integer(&w->json, "startValue", 0);
	prb_json_integer(&w->json, "endValue", weight);
}

static struct prb_error *put_thread(struct writer *w, uint32_t number, int64_t weight)
{
	const struct prb_profile_thread *thread = &w->recording->threads.items[number];
	prb_auto_str struct prb_str name = {};

	prb_str_printf(&name, "%d %s", (int)thread->tid, prb_profile_thread_name(thread));
	open_profile(w, prb_str_text(&name), weight);
	prb_json_open(&w->json, "samples", '[');
	PRB_TRY(put_samples(w, number, false));
	prb_json_close(&w->json, ']');
	prb_json_open(&w->json, "weights", '[');
	PRB_TRY(put_samples(w, number, true));
	prb_json_close(&w->json, ']');
	prb_json_close(&w->json, '}');
	return prb_sink_flush(w->sink, false);
}

/* The viewer fails on a file without any profile. */
static void put_nothing(struct writer *w)
{
	open_profile(w, prb_weight_words[w->choice->weight].none, 0);
	prb_json_open(&w->json, "samples", '[');
	prb_json_close(&w->json, ']');
	prb_json_open(&w->json, "weights", '[');
	prb_json_close(&w->json, ']');
	prb_json_close(&w->json, '}');
}

static struct prb_error *put_profiles(struct writer *w)
{
	bool any = false;

	prb_json_open(&w->json, "profiles", '[');
	for (uint32_t i = 0; i < w->recording->threads.count; i++) {
		int64_t weight = weight_of(w, i);

		if (weight > 0)
			PRB_TRY(put_thread(w, i, weight));
		any |= weight > 0;
	}
	if (!any)
		put_nothing(w);
	prb_json_close(&w->json, ']');
	return NULL;
}

static struct prb_error *write_speedscope(const struct prb_recording *recording,
					  const struct prb_profile_choice *choice,
					  struct prb_sink *sink)
{
	__attribute__((cleanup(writer_deinit))) struct writer w = {
		recording, choice, sink, {&sink->text}};
	prb_auto_str struct prb_str name = {};

	PRB_TRY(prb_fold_stacks(recording->tree, choice->lines, &w.folded));
	PRB_TRY(prb_order_make(recording, &w.order));
	prb_str_printf(&name, "%d %s", (int)recording->pid,
		       recording->command ? recording->command : "");
	prb_json_open(&w.json, NULL, '{');
	prb_json_text(&w.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	prb_json_text(&w.json, "exporter", "probing " PRB_VERSION);
	prb_json_text(&w.json, "name", prb_str_text(&name));
	PRB_TRY(put_frames(&w));
	PRB_TRY(put_profiles(&w));
	prb_json_close(&w.json, '}');
	prb_str_putc(&sink->text, '\n');
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_speedscope = {
	.name = "speedscope",
	.extensions = {".speedscope.json"},
	.does = "for https://www.speedscope.app, one profile for each thread",
	.write = write_speedscope,
};
