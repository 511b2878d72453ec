/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/within_calls.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/local_time.h"
#include "base/text.h"
#include "cli/commands/perf/record/background.h"
#include "command/exit.h"
#include "command/output.h"
#include "profile/recording/range.h"
#include "profile/recording/recording.h"
#include "profile/store/load/load.h"
#include "rings/call_rows.h"
#include "rings/known.h"

enum { MOST_CALLS = 20, MOST_CALLS_JSON = 1000, MOST_STACKS = 5, MOST_FRAMES = 16 };

/* Time that a thread spent in one stack during a call. Stack 0: the function was not on the stack.
 */
struct within {
	uint32_t stack;
	int64_t wall;
};

struct view {
	const struct prb_recording *recording;
	bool json;
	struct prb_str *text;
};

static void rows_guard(struct prb_call_rows *rows)
{
	prb_call_rows_deinit(rows);
}

/* "<unreadable>", "<not in Python>": nothing is known of what was on the stack. */
static bool is_note(const struct view *v, uint32_t stack)
{
	return stack && prb_tree_function_of(v->recording->tree, stack)->kind == PRB_FUNCTION_NOTE;
}

/* The number of the outermost frame that is of the function, from the innermost on; -1: none. */
static int64_t height_of(const struct view *v, const struct prb_call_row *call, uint32_t stack)
{
	const struct prb_tree *tree = v->recording->tree;
	int64_t found = -1;

	for (int64_t height = 0; stack; height++, stack = tree->stacks.items[stack].parent) {
		const struct prb_tree_function *f = prb_tree_function_of(tree, stack);

		if (f->kind == PRB_FUNCTION_PYTHON && prb_call_is_of(f->name, call->name))
			found = height;
	}
	return found;
}

static int by_stack(const void *a, const void *b)
{
	const struct within *x = a, *y = b;

	return (x->stack > y->stack) - (x->stack < y->stack);
}

static int by_wall(const void *a, const void *b)
{
	const struct within *x = a, *y = b;

	return (x->wall < y->wall) - (x->wall > y->wall);
}

/* One for each stack. */
static size_t sum_up(struct within *all, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(all, count, sizeof(*all), by_stack);
	for (size_t i = 0; i < count; i++)
		if (kept && all[kept - 1].stack == all[i].stack)
			all[kept - 1].wall += all[i].wall;
		else
			all[kept++] = all[i];
	if (kept)
		qsort(all, kept, sizeof(*all), by_wall);
	return kept;
}

static struct prb_error *collect(const struct view *v, const struct prb_call_row *call,
				 struct within **ret, size_t *ret_count, uint64_t *ret_samples)
{
	const struct prb_recording *recording = v->recording;
	int64_t start = (int64_t)(recording->started * 1e9);
	prb_auto_free struct within *all = calloc(recording->runs.count + 1, sizeof(*all));
	const struct prb_run *run;
	size_t count = 0;

	if (!all)
		return prb_error_nomem();
	prb_vec_each (run, &recording->runs) {
		struct prb_run inside;

		if (recording->threads.items[run->thread].tid != call->tid ||
		    !prb_run_inside(run, call->begin - start, call->end - start, &inside))
			continue;
		*ret_samples += PRB_MAX(inside.samples, 1U);
		all[count++] = (struct within){
			is_note(v, run->stack) || height_of(v, call, run->stack) >= 0 ? run->stack
										      : 0,
			inside.wall};
	}
	*ret_count = sum_up(all, count);
	*ret = prb_steal(&all);
	return NULL;
}

/* The stack from the function inwards; of one without it, the note that is its innermost frame. */
static struct prb_error *put_frames(const struct view *v, const struct prb_call_row *call,
				    struct prb_json *json, uint32_t stack)
{
	const struct prb_tree *tree = v->recording->tree;
	int64_t height = height_of(v, call, stack);
	size_t count = (size_t)PRB_MAX(height, 0) + 1;
	prb_auto_free uint32_t *frames = calloc(count + 1, sizeof(*frames));

	if (!frames)
		return prb_error_nomem();
	for (size_t i = count; i; stack = tree->stacks.items[stack].parent)
		frames[--i] = stack;
	for (size_t i = 0; i < count; i++) {
		const struct prb_tree_function *f = prb_tree_function_of(tree, frames[i]);
		int32_t line = tree->frames.items[tree->stacks.items[frames[i]].frame].line;

		if (json) {
			prb_json_open(json, NULL, '{');
			prb_json_text(json, "func", f->name);
			prb_json_text(json, "file", prb_function_file(f));
			prb_json_natural(json, "lineno", line > 0 ? line : -1);
			prb_json_close(json, '}');
			continue;
		}
		if (count > MOST_FRAMES && i == MOST_FRAMES / 2) {
			i += count - MOST_FRAMES;
			prb_str_printf(v->text, " > (%zu more)", count - MOST_FRAMES + 1);
			continue;
		}
		prb_str_puts(v->text, i ? " > " : "");
		prb_text_escape(v->text, f->name);
		if (f->kind == PRB_FUNCTION_NOTE)
			continue;
		prb_str_puts(v->text, " (");
		prb_function_put_place(v->text, f, line);
		prb_str_putc(v->text, ')');
	}
	return NULL;
}

static struct prb_error *put_json(const struct view *v, const struct prb_call_row *call,
				  const struct within *all, size_t count, uint64_t samples)
{
	struct prb_json json = {v->text};

	prb_json_open(&json, NULL, '{');
	prb_json_real(&json, "timestamp", (double)call->begin / 1e9, 6);
	prb_json_text(&json, "function_name", call->name);
	prb_json_natural(&json, "span_id", call->span);
	prb_json_natural(&json, "tid", call->tid ? call->tid : -1);
	prb_json_real(&json, "duration", (double)(call->end - call->begin) / 1e6, 3);
	prb_json_integer(&json, "samples", (int64_t)samples);
	prb_json_open(&json, "stacks", '[');
	for (size_t i = 0; i < count; i++) {
		prb_json_open(&json, NULL, '{');
		prb_json_real(&json, "duration", (double)all[i].wall / 1e6, 3);
		prb_json_open(&json, "frames", '[');
		if (all[i].stack)
			PRB_TRY(put_frames(v, call, &json, all[i].stack));
		prb_json_close(&json, ']');
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(v->text, '\n');
	return NULL;
}

static void put_clock(struct prb_str *text, int64_t ns)
{
	const struct prb_local_time clock =
		prb_local_time((time_t)(ns / 1000000000), PRB_LOCAL_CLOCK);

	prb_str_printf(text, "%s.%03d", clock.text, (int)(ns / 1000000 % 1000));
}

static struct prb_error *put_text(const struct view *v, const struct prb_call_row *call,
				  const struct within *all, size_t count, uint64_t samples)
{
	double took = (double)(call->end - call->begin) / 1e9;
	/* Samples at both ends may belong to the time before or after the call. */
	double uncertain = v->recording->rate > 0 ? 2 / v->recording->rate : 0;

	prb_str_puts(v->text, "within the call of ");
	put_clock(v->text, call->begin);
	prb_str_puts(v->text, ", ");
	prb_text_duration(v->text, took);
	if (!call->tid)
		prb_str_puts(v->text, ": its thread is unknown, as it has ended\n");
	else if (!samples)
		prb_str_puts(v->text, ": the recorder has no samples of it\n");
	else
		prb_str_printf(v->text, ", by %llu sample%s%s:\n", (unsigned long long)samples,
			       samples == 1 ? "" : "s",
			       call->begin < (int64_t)(v->recording->started * 1e9)
				       ? " (it began before the recording)"
				       : "");
	for (size_t i = 0; i < PRB_MIN(count, (size_t)MOST_STACKS); i++) {
		double wall = (double)all[i].wall / 1e9;

		if (!all[i].stack && wall < uncertain)
			continue;
		prb_str_printf(v->text, "  %3.0f %%  ", wall / took * 100);
		prb_text_duration(v->text, wall);
		prb_str_puts(v->text, "  ");
		if (all[i].stack)
			PRB_TRY(put_frames(v, call, NULL, all[i].stack));
		else
			prb_str_puts(v->text, "not on the thread's stack (a suspended "
					      "coroutine or generator)");
		prb_str_putc(v->text, '\n');
	}
	if (count > MOST_STACKS)
		prb_str_printf(v->text, "  %zu more stacks\n", count - MOST_STACKS);
	return NULL;
}

static struct prb_error *put_call(const struct view *v, const struct prb_call_row *call)
{
	prb_auto_free struct within *all = NULL;
	uint64_t samples = 0;
	size_t count;

	PRB_TRY(collect(v, call, &all, &count, &samples));
	if (v->json)
		return put_json(v, call, all, count, samples);
	return put_text(v, call, all, count, samples);
}

struct wanted {
	const char *name;
	bool whole;    /* only functions whose whole name is that */
	int64_t since; /* of ends */
	double slower;
};

/* Calls that other traces record are none of ours. */
static bool is_wanted(const struct wanted *w, const struct prb_call_row *call)
{
	/* What the ring has is rounded. */
	return call->late && call->end >= w->since &&
	       (double)(call->end - call->begin) >= w->slower * 1e9 - 1e3 &&
	       (!w->whole || !fnmatch(w->name, call->name, FNM_NOESCAPE));
}

static void keep_wanted(struct prb_call_rows *calls, const struct wanted *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < calls->list.count; i++)
		if (is_wanted(w, &calls->list.items[i]))
			calls->list.items[kept++] = calls->list.items[i];
	calls->list.count = kept;
}

static struct prb_error *load(const struct prb_known_recording *known, int64_t end,
			      bool *ret_reached, struct prb_recording **ret)
{
	PRB_TRY(prb_performance_wait_written(known->path, end, ret_reached));
	PRB_TRY(prb_performance_check_kept(known->path));
	return prb_profile_load(known->path, true, ret);
}

static struct prb_error *show(struct view *v, const struct prb_call_rows *calls)
{
	prb_auto_str struct prb_str text = {};
	size_t most = v->json ? MOST_CALLS_JSON : MOST_CALLS;
	size_t shown = PRB_MIN(calls->list.count, most);
	prb_auto_free char *more = prb_format("the %zu longest calls are shown with stacks, of %zu",
					      shown, calls->list.count);

	v->text = &text;
	for (size_t i = 0; i < shown; i++)
		PRB_TRY(put_call(v, &calls->list.items[i]));
	PRB_TRY(prb_output_lines(&text, v->json));
	PRB_TRY(prb_output_flush());
	if (shown < calls->list.count && more)
		prb_warn(more);
	return NULL;
}

static void say_none(pid_t pid)
{
	prb_auto_free char *text = prb_format("no stacks within them: no recorder runs for this "
					      "process; 'probing %d perf --background' starts one",
					      (int)pid);

	if (text)
		prb_warn(text);
}

/* Spans lack the module's name. Like the agent, drops leading parts until calls are found. */
static struct prb_error *find_calls(struct prb_target *target, struct wanted *w,
				    struct prb_call_rows *ret)
{
	const char *colon = strrchr(w->name, ':'), *dot;

	if (colon)
		w->name = colon + 1;
	for (;;) {
		PRB_TRY(prb_call_rows_read(target, w->name, ret));
		keep_wanted(ret, w);
		dot = strchr(w->name, '.');
		if (ret->list.count || !dot)
			return NULL;
		prb_call_rows_deinit(ret);
		w->name = dot + 1;
		w->whole = true;
	}
}

/* The calls are shown already, so that the recording cannot be read is no failure. */
static struct prb_error *say_unread(struct prb_error *err)
{
	prb_auto_free char *text = prb_format("no stacks within them: %s", err->message);

	if (err->code == PRB_ERROR_NOMEM)
		return err;
	if (text)
		prb_warn(text);
	prb_error_destroy(err);
	return NULL;
}

struct prb_error *prb_stacks_within_calls(struct prb_target *target, const char *name,
					  int64_t since, double slower, bool json)
{
	__attribute__((cleanup(rows_guard))) struct prb_call_rows calls = {};
	prb_auto_recording struct prb_recording *recording = NULL;
	prb_auto_known_list struct prb_known_list known = {};
	struct wanted wanted = {.name = name, .since = since, .slower = slower};
	struct view view = {.json = json};
	const struct prb_call_row *call;
	bool reached = false;
	struct prb_error *err;
	int64_t end = 0;

	PRB_TRY(find_calls(target, &wanted, &calls));
	if (!calls.list.count)
		return NULL;
	PRB_TRY(prb_known_find(target->pid, &known));
	if (!known.list.count || !known.list.items[0].running) {
		say_none(target->pid);
		return NULL;
	}
	prb_vec_each (call, &calls.list)
		end = PRB_MAX(end, call->end);
	err = load(&known.list.items[0], end, &reached, &recording);
	if (err)
		return say_unread(err);
	if (!reached)
		prb_warn("the recorder has not written the last calls yet: their stacks may be "
			 "incomplete");
	view.recording = recording;
	return show(&view, &calls);
}
