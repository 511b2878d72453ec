/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A dump as JSON, frame by frame, so that a stack of 30,000 frames takes no memory.
 *
 * The names are a public interface: docs/json.md and docs/dump.schema.json describe them.
 */
#include "dump/text/json.h"

#include <inttypes.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "target/proc/signal_text.h"

/* Bytes written at once. */
enum { CHUNK = 64 << 10 };

static const char *const layouts[] = {
	[PRB_LAYOUT_DEBUG_OFFSETS] = "debug_offsets",
	[PRB_LAYOUT_DWARF] = "dwarf",
	[PRB_LAYOUT_TABLE] = "table",
};

static const char *const reads[] = {
	[PRB_READ_IDLE] = "idle",
	[PRB_READ_STOPPED] = "stopped",
	[PRB_READ_UNSTABLE] = "unstable",
};

static const char *const frame_kinds[] = {
	[PRB_FRAME_PYTHON] = "python",
	[PRB_FRAME_NATIVE] = "native",
	[PRB_FRAME_INLINE] = "inline",
};

static const char *const local_kinds[] = {
	[PRB_LOCAL_ARGUMENT] = "argument", [PRB_LOCAL_LOCAL] = "local", [PRB_LOCAL_CELL] = "cell",
	[PRB_LOCAL_FREE] = "free",	   [PRB_LOCAL_NAME] = "name",
};

struct writer {
	struct prb_json json;
	struct prb_str text; /**< not written yet */
	const struct prb_dump_options *options;
	prb_dump_json_put *put;
	void *context;
};

static void write_out(struct writer *w, size_t more_than)
{
	if (w->text.length <= more_than)
		return;
	w->put(w->context, w->text.data, w->text.length);
	prb_str_truncate(&w->text, 0);
}

static void put_python(struct prb_json *json, const struct prb_dump *dump)
{
	if (!dump->python_version) {
		prb_json_null(json, "python");
		return;
	}
	prb_json_open(json, "python", '{');
	prb_json_text(json, "version", dump->python_version);
	prb_json_text(json, "implementation", "CPython");
	prb_json_bool(json, "free_threaded", dump->free_threaded);
	prb_json_bool(json, "debug_build", dump->debug_build);
	prb_json_text(json, "layout", layouts[dump->layout]);
	prb_json_text(json, "build_id", dump->build_id);
	prb_json_close(json, '}');
}

static void put_death(struct prb_json *json, const struct prb_dump_death *death)
{
	prb_auto_str struct prb_str name = {}, address = {};

	if (!death->signal) {
		prb_json_null(json, "signal");
		return;
	}
	prb_put_signal(&name, death->signal);
	prb_str_printf(&address, "%#" PRIx64, death->address);
	prb_json_open(json, "signal", '{');
	prb_json_natural(json, "number", death->signal);
	prb_json_text(json, "name", prb_str_text(&name));
	prb_json_text(json, "code", death->code);
	prb_json_text(json, "reason", death->why);
	prb_json_text(json, "address", death->has_address ? prb_str_text(&address) : NULL);
	prb_json_natural(json, "sender", death->sender ? death->sender : -1);
	prb_json_natural(json, "tid", death->tid ? death->tid : -1);
	prb_json_close(json, '}');
}

static void put_target(struct prb_json *json, const struct prb_dump *dump)
{
	char *const *argument;

	prb_json_open(json, "target", '{');
	prb_json_text(json, "kind", prb_target_kind_key(dump->kind));
	prb_json_natural(json, "pid", dump->pid ? dump->pid : -1);
	prb_json_text(json, "exe", dump->exe);
	prb_json_open(json, "argv", '[');
	prb_vec_each (argument, &dump->argv)
		prb_json_text(json, NULL, *argument);
	prb_json_close(json, ']');
	put_death(json, &dump->death);
	prb_json_text(json, "exception", dump->exception);
	put_python(json, dump);
	prb_json_close(json, '}');
}

static void put_locals(struct prb_json *json, const struct prb_dump_frame *frame)
{
	const struct prb_dump_local *local;

	prb_json_open(json, "locals", '[');
	prb_vec_each (local, &frame->locals) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "name", local->name);
		prb_json_text(json, "kind", local_kinds[local->kind]);
		prb_json_text(json, "type", local->type);
		prb_json_text(json, "value", local->value);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static void put_frame(struct writer *w, const struct prb_dump_frame *frame)
{
	struct prb_json *json = &w->json;

	prb_json_open(json, NULL, '{');
	prb_json_text(json, "kind", frame_kinds[frame->kind]);
	prb_json_text(json, "func", frame->func);
	prb_json_text(json, "qualname", frame->qualname);
	if (frame->full_func)
		prb_json_text(json, "full_func", frame->full_func);
	prb_json_text(json, "module", frame->module);
	prb_json_text(json, "file", frame->file);
	/* A negative value means that the interpreter has None. */
	prb_json_natural(json, "line", frame->line);
	prb_json_natural(json, "end_line", frame->end_line);
	prb_json_natural(json, "col", frame->col);
	prb_json_natural(json, "end_col", frame->end_col);
	prb_json_natural(json, "ip", frame->ip <= INT64_MAX ? (int64_t)frame->ip : -1);
	prb_json_natural(json, "offset",
			 frame->offset && frame->offset <= INT64_MAX ? (int64_t)frame->offset : -1);
	prb_json_text(json, "error", frame->error);
	if (w->options->source)
		prb_json_text(json, "source", frame->source);
	if (w->options->locals)
		put_locals(json, frame);
	prb_json_close(json, '}');
}

static void put_thread(struct writer *w, const struct prb_dump_thread *t)
{
	struct prb_json *json = &w->json;
	const struct prb_dump_frame *frame;

	prb_json_open(json, NULL, '{');
	prb_json_natural(json, "tid", t->tid ? t->tid : -1);
	prb_json_text(json, "name", t->name);
	prb_json_text(json, "os_name", t->os_name);
	prb_json_natural(json, "interpreter", t->interpreter);
	prb_json_text(json, "state", t->state ? t->state : "unknown");
	prb_json_real(json, "idle_seconds", t->idle_seconds, 6);
	prb_json_text(json, "waits_for", t->waits_for);
	prb_json_text(json, "in_c", t->in_c);
	prb_json_text(json, "gil", t->gil);
	prb_json_bool(json, "gc", t->gc);
	prb_json_text(json, "read", reads[t->read]);
	prb_json_real(json, "pause_us", t->pause_us, 3);
	prb_json_text(json, "error", t->error);
	if (t->note)
		prb_json_text(json, "note", t->note);
	prb_json_open(json, "frames", '[');
	prb_vec_each (frame, &t->frames) {
		put_frame(w, frame);
		write_out(w, CHUNK);
	}
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

static void put_frames(struct writer *w, const struct prb_dump_task *task, size_t from, size_t to)
{
	prb_json_open(&w->json, "frames", '[');
	for (size_t i = from; i < to && i < task->frames.count; i++) {
		put_frame(w, &task->frames.items[i]);
		write_out(w, CHUNK);
	}
	prb_json_close(&w->json, ']');
}

/** Its frames, and those of each task that waits for it, are one list in the model. */
static void put_task(struct writer *w, const struct prb_dump_task *task)
{
	struct prb_json *json = &w->json;
	const struct prb_dump_awaiter *awaiters = task->awaiters.items;
	size_t count = task->awaiters.count;

	prb_json_open(json, NULL, '{');
	prb_json_text(json, "kind", task->kind);
	prb_json_natural(json, "tid", task->tid ? task->tid : -1);
	prb_json_text(json, "name", task->name);
	prb_json_bool(json, "current", task->current);
	prb_json_text(json, "waits_for", task->waits_for);
	prb_json_text(json, "error", task->error);
	put_frames(w, task, 0, count ? awaiters[0].at : SIZE_MAX);
	prb_json_open(json, "awaited_by", '[');
	for (size_t i = 0; i < count; i++) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "name", awaiters[i].name);
		put_frames(w, task, awaiters[i].at, i + 1 < count ? awaiters[i + 1].at : SIZE_MAX);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

static void put_tasks(struct writer *w, const struct prb_dump *dump)
{
	const struct prb_dump_task *task;

	if (!dump->tasks.count)
		return;
	prb_json_open(&w->json, "tasks", '[');
	prb_vec_each (task, &dump->tasks)
		put_task(w, task);
	prb_json_close(&w->json, ']');
}

static void put_dump(struct writer *w, const struct prb_dump *dump)
{
	struct prb_json *json = &w->json;
	const struct prb_dump_thread *t;
	char *const *warning;

	prb_json_open(json, NULL, '{');
	put_target(json, dump);
	prb_json_real(json, "timestamp", dump->timestamp, 6);
	prb_json_real(json, "pause_us", dump->pause_us, 3);
	prb_json_integer(json, "paused_threads", dump->paused_threads);
	if (w->options->native)
		prb_json_integer(json, "own_frames", (int64_t)dump->own_frames);
	prb_json_open(json, "warnings", '[');
	prb_vec_each (warning, &dump->warnings)
		prb_json_text(json, NULL, *warning);
	prb_json_close(json, ']');
	prb_json_open(json, "threads", '[');
	prb_vec_each (t, &dump->threads)
		put_thread(w, t);
	prb_json_close(json, ']');
	put_tasks(w, dump);
	prb_json_close(json, '}');
}

struct prb_error *prb_dump_json(const struct prb_dump *dump, const struct prb_dump_options *options,
				prb_dump_json_put *put, void *context)
{
	struct writer w = {.options = options, .put = put, .context = context};

	w.json.out = &w.text;
	put_dump(&w, dump);
	write_out(&w, 0);

	bool failed = w.text.failed;
	prb_str_deinit(&w.text);
	return failed ? prb_error_nomem() : NULL;
}
