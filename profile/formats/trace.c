/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The trace event format of Chrome and Perfetto: for each thread the calls, in the order of time.
 *
 * A viewer drops slices of a thread that overlap without one being inside of the other: a call ends
 * with its caller, and none goes on over a moment at which something else was seen, or nothing. Of
 * slices that begin together the outer one comes first, as they may be equally long.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/formats/format.h"
#include "profile/recording/order.h"

/* A call, or what the thread did inside of its innermost call if it did not run. */
struct slice {
	uint32_t place;
	enum prb_run_state state; /* PRB_RUN_ON_CPU: it is a call */
	int64_t begin, end;
};

struct writer {
	const struct prb_recording *recording;
	const struct prb_profile_choice *choice;
	struct prb_sink *sink;
	struct prb_json json;
	struct prb_order order;
	pid_t pid, tid;
	PRB_VEC(struct slice) slices; /* of the thread, by their begin */
	PRB_VEC(size_t) open;	      /* of them, outermost first */
	int64_t end;		      /* of the last run */
};

static void writer_deinit(struct writer *w)
{
	prb_order_deinit(&w->order);
	prb_vec_free(&w->slices);
	prb_vec_free(&w->open);
}

/*
 * Microseconds, in eighths: those are decimals of three digits and doubles without an error. So a
 * reader that adds a begin and a duration as doubles, or makes whole nanoseconds of both, gets the
 * end that the caller and the next call have.
 */
static int64_t eighths(int64_t ns)
{
	enum { NS = 125 };

	return ns / NS;
}

static void put_time(struct writer *w, const char *key, int64_t eighths)
{
	prb_json_real(&w->json, key, (double)eighths / 8, 3);
}

static void open_event(struct writer *w, const char *phase, const char *name)
{
	prb_json_open(&w->json, NULL, '{');
	prb_json_text(&w->json, "ph", phase);
	prb_json_text(&w->json, "name", name);
	prb_json_integer(&w->json, "pid", w->pid);
	prb_json_integer(&w->json, "tid", w->tid);
}

static void open_slice(struct writer *w, const struct slice *slice, const char *name,
		       const char *category)
{
	open_event(w, "X", name);
	prb_json_text(&w->json, "cat", category);
	put_time(w, "ts", eighths(slice->begin));
	put_time(w, "dur", eighths(slice->end) - eighths(slice->begin));
}

static void put_call(struct writer *w, const struct slice *slice)
{
	static const char *const kinds[] = {
		[PRB_FUNCTION_PYTHON] = "python",
		[PRB_FUNCTION_NATIVE] = "native",
		[PRB_FUNCTION_NOTE] = "note",
		[PRB_FUNCTION_TASK] = "note",
	};
	struct prb_place place = prb_place_get(w->recording->tree, w->choice->lines, slice->place);

	open_slice(w, slice, place.function->name, kinds[place.function->kind]);
	if (prb_function_file(place.function)) {
		prb_json_open(&w->json, "args", '{');
		prb_json_text(&w->json, "file", prb_function_file(place.function));
		if (place.function->file && place.line > 0)
			prb_json_integer(&w->json, "line", place.line);
		prb_json_close(&w->json, '}');
	}
	prb_json_close(&w->json, '}');
}

static struct prb_error *put_slices(struct writer *w)
{
	const struct slice *slice;

	prb_vec_each (slice, &w->slices) {
		if (slice->state == PRB_RUN_ON_CPU) {
			put_call(w, slice);
		} else {
			open_slice(w, slice, prb_run_state_name(slice->state), "state");
			prb_json_close(&w->json, '}');
		}
		PRB_TRY(prb_sink_flush(w->sink, false));
	}
	w->slices.count = 0;
	return NULL;
}

/* Ends the calls inside of the first @p keep ones. */
static void close_calls(struct writer *w, size_t keep)
{
	while (w->open.count > keep)
		w->slices.items[w->open.items[--w->open.count]].end = w->end;
}

static struct prb_error *add_slice(struct writer *w, uint32_t place, const struct prb_run *run,
				   enum prb_run_state state)
{
	struct slice *slice = prb_vec_push(&w->slices);

	if (!slice)
		return prb_error_nomem();
	*slice = (struct slice){place, state, run->begin, run->begin + run->wall};
	return NULL;
}

static struct prb_error *open_call(struct writer *w, uint32_t place, const struct prb_run *run)
{
	size_t *number;

	PRB_TRY(add_slice(w, place, run, PRB_RUN_ON_CPU));
	number = prb_vec_push(&w->open);
	if (!number)
		return prb_error_nomem();
	*number = w->slices.count - 1;
	return NULL;
}

static struct prb_error *add_run(struct writer *w, const struct prb_run *run)
{
	const struct prb_tree *tree = w->recording->tree;
	uint32_t depth = tree->stacks.items[run->stack].depth;
	prb_auto_free uint32_t *places = NULL;
	size_t same = 0;

	PRB_TRY(prb_fold_places(tree, w->choice->lines, run->stack, &places));
	while (run->begin == w->end && same < depth && same < w->open.count &&
	       w->slices.items[w->open.items[same]].place == places[same])
		same++;
	close_calls(w, same);
	for (size_t i = same; i < depth; i++)
		PRB_TRY(open_call(w, places[i], run));
	if (run->state != PRB_RUN_ON_CPU)
		PRB_TRY(add_slice(w, 0, run, run->state));
	w->end = run->begin + run->wall;
	return NULL;
}

static void put_name(struct writer *w, const char *what, const char *name)
{
	open_event(w, "M", what);
	prb_json_open(&w->json, "args", '{');
	prb_json_text(&w->json, "name", name);
	prb_json_close(&w->json, '}');
	prb_json_close(&w->json, '}');
}

static void put_processes(struct writer *w)
{
	for (uint32_t i = 0; i <= w->recording->others.count; i++) {
		const char *command = prb_recording_command_line(w->recording, i);

		w->pid = w->tid = prb_recording_pid(w->recording, i);
		put_name(w, "process_name", command ? command : "");
	}
}

static struct prb_error *put_thread(struct writer *w, uint32_t number)
{
	const struct prb_profile_thread *thread = &w->recording->threads.items[number];

	w->tid = thread->tid;
	w->pid = prb_recording_pid(w->recording, thread->process);
	put_name(w, "thread_name", prb_profile_thread_name(thread));
	w->end = 0;
	prb_order_each(i, &w->order, number)
	{
		const struct prb_run *run = &w->recording->runs.items[*i];

		if (prb_run_weight(run, w->choice) > 0 && run->wall > 0)
			PRB_TRY(add_run(w, run));
	}
	close_calls(w, 0);
	return put_slices(w);
}

static struct prb_error *write_trace(const struct prb_recording *recording,
				     const struct prb_profile_choice *choice, struct prb_sink *sink)
{
	__attribute__((cleanup(writer_deinit))) struct writer w = {
		recording, choice, sink, {&sink->text}};

	PRB_TRY(prb_order_make(recording, &w.order));
	prb_json_open(&w.json, NULL, '{');
	prb_json_text(&w.json, "displayTimeUnit", "ms");
	prb_json_open(&w.json, "otherData", '{');
	prb_json_text(&w.json, "exporter", "probing " PRB_VERSION);
	prb_json_close(&w.json, '}');
	prb_json_open(&w.json, "traceEvents", '[');
	put_processes(&w);
	for (uint32_t i = 0; i < recording->threads.count; i++)
		if (!choice->threads || choice->threads[i])
			PRB_TRY(put_thread(&w, i));
	prb_json_close(&w.json, ']');
	prb_json_close(&w.json, '}');
	prb_str_putc(&sink->text, '\n');
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_trace = {
	.name = "trace",
	.extensions = {".trace.json"},
	.does = "for https://ui.perfetto.dev and chrome://tracing: calls in the order of time",
	.write = write_trace,
};
