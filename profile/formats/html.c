/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A page that shows the recording in a browser, without any network: one file.
 *
 * The page is made of profile/page/ when this is built; its data is in it as JSON, in which no "<"
 * is written, so that no name can end the element that it is in.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/recording/diff.h"
#include "profile/formats/format.h"
#include "profile/recording/wait_sums.h"

static const char page[] =
#include "profile/page.inc"
	;
static const char data_mark[] = "@DATA@";

struct writer {
	const struct prb_recording *recording;
	const struct prb_profile_choice *choice;
	struct prb_sink *sink;
	struct prb_str text; /* JSON that is not in the sink yet */
	struct prb_json json;
	/* Numbers of the texts of a function's file and of its module; UINT32_MAX if it has none.
	 */
	PRB_VEC(uint32_t) file_texts, module_texts;
	uint32_t *threads; /* number of each thread among the chosen ones */
};

static void writer_deinit(struct writer *w)
{
	prb_str_deinit(&w->text);
	prb_vec_free(&w->file_texts);
	prb_vec_free(&w->module_texts);
	free(w->threads);
}

/* Hands the JSON that there is to the sink. */
static struct prb_error *flush(struct writer *w)
{
	const char *at = prb_str_text(&w->text);

	if (w->text.failed)
		return prb_error_nomem();
	while (*at) {
		size_t part = strcspn(at, "<");

		prb_str_append(&w->sink->text, at, part);
		at += part;
		if (*at) {
			prb_str_puts(&w->sink->text, "\\u003c");
			at++;
		}
	}
	prb_str_truncate(&w->text, 0);
	return prb_sink_flush(w->sink, false);
}

static bool is_chosen(const struct writer *w, uint32_t thread)
{
	return !w->choice->threads || w->choice->threads[thread];
}

static void put_number(struct writer *w, int64_t value)
{
	prb_json_integer(&w->json, NULL, value);
}

static void put_subject(struct writer *w, const struct prb_recording *r)
{
	prb_json_integer(&w->json, "pid", r->pid);
	prb_json_text(&w->json, "command", r->command ? r->command : "");
	prb_json_text(&w->json, "python", r->python ? r->python : "?");
	prb_json_real(&w->json, "started", r->started, 3);
	prb_json_integer(&w->json, "duration", r->duration);
	prb_json_real(&w->json, "rate", r->rate, 0);
	prb_json_text(&w->json, "ended", prb_profile_end_text(r->end));
}

static void put_facts(struct writer *w)
{
	prb_json_text(&w->json, "probing", PRB_VERSION);
	put_subject(w, w->recording);
	prb_json_integer(&w->json, "step", w->recording->step);
	prb_json_bool(&w->json, "bytes", w->recording->bytes);
	prb_json_text(&w->json, "mode", prb_weight_words[w->choice->weight].mode);
	prb_json_bool(&w->json, "lines", w->choice->lines);
	prb_json_open(&w->json, "states", '[');
	for (unsigned i = 0; i < PRB_RUN_STATES; i++)
		prb_json_text(&w->json, NULL, prb_run_state_name((enum prb_run_state)i));
	prb_json_close(&w->json, ']');
}

static void put_cost(struct writer *w)
{
	const struct prb_profile_cost *c = &w->recording->cost;

	prb_json_open(&w->json, "cost", '{');
	prb_json_integer(&w->json, "duration", c->duration);
	prb_json_integer(&w->json, "stops", (int64_t)c->stops);
	prb_json_real(&w->json, "p50", c->pause_p50, 1);
	prb_json_real(&w->json, "p99", c->pause_p99, 1);
	prb_json_real(&w->json, "max", c->pause_max, 1);
	prb_json_real(&w->json, "pauses", c->pause_total, 1);
	prb_json_integer(&w->json, "own", c->own_cpu);
	prb_json_integer(&w->json, "missed", (int64_t)c->missed);
	prb_json_integer(&w->json, "late", (int64_t)c->late);
	prb_json_integer(&w->json, "unreadable", (int64_t)c->unreadable);
	prb_json_close(&w->json, '}');
}

/* "4242 python3 train.py", by number. */
static struct prb_error *put_processes(struct writer *w)
{
	const struct prb_recording *r = w->recording;

	prb_json_open(&w->json, "processes", '[');
	for (uint32_t i = 0; i <= r->others.count; i++) {
		const char *command = prb_recording_command_line(r, i);
		prb_auto_free char *name =
			prb_format("%d %s", (int)prb_recording_pid(r, i), command ? command : "");

		if (!name)
			return prb_error_nomem();
		prb_json_text(&w->json, NULL, name);
		PRB_TRY(flush(w));
	}
	prb_json_close(&w->json, ']');
	return NULL;
}

static struct prb_error *put_threads(struct writer *w)
{
	uint32_t chosen = 0;

	w->threads = calloc(w->recording->threads.count + 1, sizeof(*w->threads));
	if (!w->threads)
		return prb_error_nomem();
	prb_json_open(&w->json, "threads", '[');
	for (uint32_t i = 0; i < w->recording->threads.count; i++) {
		const struct prb_profile_thread *thread = &w->recording->threads.items[i];

		if (!is_chosen(w, i))
			continue;
		w->threads[i] = chosen++;
		prb_json_open(&w->json, NULL, '{');
		prb_json_integer(&w->json, "process", thread->process);
		prb_json_integer(&w->json, "tid", thread->tid);
		prb_json_text(&w->json, "name", prb_profile_thread_name(thread));
		prb_json_integer(&w->json, "cpu", thread->cpu);
		prb_json_close(&w->json, '}');
		PRB_TRY(flush(w));
	}
	prb_json_close(&w->json, ']');
	return NULL;
}

/*
 * The recording that it is compared with, and for each function how many samples are worth an
 * independent one.
 */
static struct prb_error *put_comparison(struct writer *w)
{
	const struct prb_recording *r = w->recording;
	prb_auto_free double *worth = calloc(2 * r->tree->functions.count + 1, sizeof(*worth));
	const struct prb_profile_choice choice = {w->choice->weight, false, w->choice->threads};
	const struct prb_diff_row *row;
	struct prb_diff diff;
	int64_t threads = 0;

	if (!worth)
		return prb_error_nomem();
	for (uint32_t i = 0; i < r->before_threads; i++)
		threads += is_chosen(w, i);
	prb_json_open(&w->json, "before", '{');
	put_subject(w, r->before);
	prb_json_integer(&w->json, "threads", threads);
	prb_json_close(&w->json, '}');
	PRB_TRY(prb_diff_make(r, &choice, &diff));
	prb_vec_each (row, &diff.rows) {
		worth[2 * row->function] = row->self.worth;
		worth[2 * row->function + 1] = row->total.worth;
	}
	prb_diff_deinit(&diff);
	prb_json_open(&w->json, "worth", '[');
	for (size_t i = 0; i < 2 * r->tree->functions.count; i++)
		prb_json_real(&w->json, NULL, worth[i], worth[i] == 1 || worth[i] == 0 ? 0 : 2);
	prb_json_close(&w->json, ']');
	return flush(w);
}

/* The number of a path, which is written when it is met for the first time. */
static struct prb_error *put_path(struct writer *w, struct prb_number_map *known, uint32_t *next,
				  const char *path, uint32_t *ret)
{
	size_t found;

	*ret = UINT32_MAX;
	if (!path)
		return NULL;
	if (prb_number_map_get(known, (uint64_t)(uintptr_t)path, &found)) {
		*ret = (uint32_t)found;
		return NULL;
	}
	if (!prb_number_map_put(known, (uint64_t)(uintptr_t)path, *next))
		return prb_error_nomem();
	prb_json_text(&w->json, NULL, path);
	*ret = (*next)++;
	return NULL;
}

static struct prb_error *put_paths(struct writer *w, struct prb_number_map *known)
{
	const struct prb_tree *tree = w->recording->tree;
	uint32_t next = (uint32_t)tree->functions.count;
	const struct prb_tree_function *f;

	prb_vec_each (f, &tree->functions) {
		uint32_t *file = prb_vec_push(&w->file_texts);
		uint32_t *module = prb_vec_push(&w->module_texts);

		if (!file || !module)
			return prb_error_nomem();
		PRB_TRY(put_path(w, known, &next, f->file, file));
		PRB_TRY(put_path(w, known, &next, f->module, module));
	}
	return NULL;
}

/* A function's name has its number, in front of the paths, each of which is there once. */
static struct prb_error *put_texts(struct writer *w)
{
	struct prb_number_map known = {};
	const struct prb_tree_function *f;
	struct prb_error *err;

	prb_json_open(&w->json, "texts", '[');
	prb_vec_each (f, &w->recording->tree->functions)
		prb_json_text(&w->json, NULL, f->name);
	err = put_paths(w, &known);
	prb_json_close(&w->json, ']');
	prb_number_map_deinit(&known);
	PRB_TRY(err);
	return flush(w);
}

static void put_path_number(struct writer *w, uint32_t number)
{
	put_number(w, number == UINT32_MAX ? -1 : (int64_t)number);
}

/* Rows of numbers follow each other. */
static struct prb_error *put_tree(struct writer *w)
{
	const struct prb_tree *tree = w->recording->tree;
	const struct prb_tree_frame *frame;

	prb_json_open(&w->json, "functions", '[');
	for (uint32_t i = 0; i < tree->functions.count; i++) {
		const struct prb_tree_function *f = &tree->functions.items[i];

		put_number(w, f->kind);
		put_number(w, i);
		put_path_number(w, w->file_texts.items[i]);
		put_number(w, f->first_line);
		put_path_number(w, w->module_texts.items[i]);
	}
	prb_json_close(&w->json, ']');
	prb_json_open(&w->json, "frames", '[');
	prb_vec_each (frame, &tree->frames) {
		put_number(w, frame->function);
		put_number(w, frame->line);
		PRB_TRY(flush(w));
	}
	prb_json_close(&w->json, ']');
	prb_json_open(&w->json, "stacks", '[');
	for (size_t i = 1; i < tree->stacks.count; i++) {
		put_number(w, tree->stacks.items[i].parent);
		put_number(w, tree->stacks.items[i].frame);
		PRB_TRY(flush(w));
	}
	prb_json_close(&w->json, ']');
	return NULL;
}

/* The causes that threads waited for, by number; the first is unknown. */
static struct prb_error *put_waits(struct writer *w)
{
	const struct prb_recording *r = w->recording;

	prb_json_open(&w->json, "waits", '[');
	for (uint32_t i = 0; i < r->waits.count; i++) {
		prb_auto_str struct prb_str text = {};

		if (r->waits.items[i].kind != PRB_WAIT_NONE)
			prb_wait_text(r, i, &text);
		prb_json_text(&w->json, NULL, prb_str_text(&text));
		PRB_TRY(flush(w));
	}
	prb_json_close(&w->json, ']');
	return NULL;
}

/* Bit 0: it held the GIL; bit 1: it was blocked; above them what it waited for. */
static int64_t flags_of(const struct prb_run *run)
{
	const struct prb_profile_choice gil = {.weight = PRB_WEIGHT_GIL};
	const struct prb_profile_choice blocked = {.weight = PRB_WEIGHT_BLOCKED};
	bool runs = run->state == PRB_RUN_ON_CPU || run->state == PRB_RUN_QUEUED;

	return (prb_run_weight(run, &gil) > 0) | (prb_run_weight(run, &blocked) > 0) << 1 |
	       (runs ? 0 : (int64_t)run->wait << 2);
}

static struct prb_error *put_runs(struct writer *w)
{
	const struct prb_run *run;

	prb_json_open(&w->json, "runs", '[');
	prb_vec_each (run, &w->recording->runs) {
		if (!is_chosen(w, run->thread))
			continue;
		put_number(w, w->threads[run->thread]);
		put_number(w, run->stack);
		put_number(w, run->state);
		put_number(w, run->samples);
		put_number(w, run->begin);
		put_number(w, run->wall);
		put_number(w, run->cpu);
		put_number(w, run->queue);
		prb_json_real(&w->json, NULL, run->cpu_squares, 0);
		put_number(w, flags_of(run));
		PRB_TRY(flush(w));
	}
	prb_json_close(&w->json, ']');
	return NULL;
}

/* [file, line, text, …], files by the numbers of their texts. */
static struct prb_error *put_source(struct writer *w)
{
	const struct prb_recording *r = w->recording;
	const struct prb_profile_line *line;
	struct prb_number_map files = {};
	struct prb_error *err = NULL;

	for (size_t i = 0; i < r->tree->functions.count && !err; i++)
		if (r->tree->functions.items[i].file &&
		    !prb_number_map_put(&files,
					(uint64_t)(uintptr_t)r->tree->functions.items[i].file,
					w->file_texts.items[i]))
			err = prb_error_nomem();
	prb_json_open(&w->json, "source", '[');
	prb_vec_each (line, &r->lines) {
		size_t file;

		if (err || !prb_number_map_get(&files, (uint64_t)(uintptr_t)line->file, &file))
			continue;
		put_number(w, (int64_t)file);
		put_number(w, line->line);
		prb_json_text(&w->json, NULL, line->text);
		err = flush(w);
	}
	prb_json_close(&w->json, ']');
	prb_number_map_deinit(&files);
	return err;
}

static struct prb_error *put_data(struct writer *w)
{
	prb_json_open(&w->json, NULL, '{');
	put_facts(w);
	put_cost(w);
	PRB_TRY(put_processes(w));
	PRB_TRY(put_threads(w));
	if (w->recording->before)
		PRB_TRY(put_comparison(w));
	PRB_TRY(put_texts(w));
	PRB_TRY(put_tree(w));
	PRB_TRY(put_waits(w));
	PRB_TRY(put_runs(w));
	PRB_TRY(put_source(w));
	prb_json_close(&w->json, '}');
	return flush(w);
}

static struct prb_error *write_html(const struct prb_recording *recording,
				    const struct prb_profile_choice *choice, struct prb_sink *sink)
{
	__attribute__((cleanup(writer_deinit))) struct writer w = {recording, choice, sink};
	const char *mark = strstr(page, data_mark);

	w.json.out = &w.text;
	prb_str_append(&sink->text, page, (size_t)(mark - page));
	PRB_TRY(put_data(&w));
	prb_str_puts(&sink->text, mark + strlen(data_mark));
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_html = {
	.name = "html",
	.extensions = {".html"},
	.does = "an interactive flame graph, for any browser, without network",
	.bytes = true,
	.write = write_html,
};
