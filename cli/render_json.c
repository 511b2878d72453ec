/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A dump as JSON, frame by frame, so that a stack of 30,000 frames takes no memory.
 *
 * The names are a public interface: docs/json.md and docs/dump.schema.json describe them.
 */
#include "cli/render.h"

#include <math.h>
#include <stdint.h>

#include "cli/json.h"
#include "dwarf/base/cleanup.h"

static const char *const target_kinds[] = {
	[PRB_TARGET_PROCESS] = "process",
	[PRB_TARGET_CORE] = "core",
	[PRB_TARGET_SNAPSHOT] = "snapshot",
};

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

/** A time to the @p scale-th part of its unit, without the noise of binary fractions. */
static json_t *rounded(double value, double scale)
{
	return value >= 0 && isfinite(value) ? json_real(round(value * scale) / scale)
					     : json_null();
}

static json_t *python_json(const struct prb_dump *dump)
{
	if (!dump->python_version)
		return json_null();
	return json_pack("{so ss sb sb ss so}", "version", prb_json_text(dump->python_version),
			 "implementation", "CPython", "free_threaded", dump->free_threaded,
			 "debug_build", dump->debug_build, "layout", layouts[dump->layout],
			 "build_id", prb_json_text(dump->build_id));
}

static json_t *target_json(const struct prb_dump *dump)
{
	json_t *argv = json_array();
	char *const *argument;

	prb_vec_each (argument, &dump->argv)
		json_array_append_new(argv, prb_json_text(*argument));
	return json_pack("{ss so so so so}", "kind", target_kinds[dump->kind], "pid",
			 dump->pid ? json_integer(dump->pid) : json_null(), "exe",
			 prb_json_text(dump->exe), "argv", argv, "python", python_json(dump));
}

static json_t *locals_json(const struct prb_dump_frame *frame)
{
	const struct prb_dump_local *local;
	json_t *list = json_array();

	prb_vec_each (local, &frame->locals)
		json_array_append_new(list,
				      json_pack("{so ss so so}", "name", prb_json_text(local->name),
						"kind", local_kinds[local->kind], "type",
						prb_json_text(local->type), "value",
						prb_json_text(local->value)));
	return list;
}

/** Lines and columns: null where the interpreter itself says None. */
static json_t *position(int32_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *frame_json(const struct prb_dump_frame *frame,
			  const struct prb_render_options *options)
{
	json_t *json = json_pack(
		"{ss so so so so so so so so so so}", "kind", frame_kinds[frame->kind], "func",
		prb_json_text(frame->func), "qualname", prb_json_text(frame->qualname), "module",
		prb_json_text(frame->module), "file", prb_json_text(frame->file), "line",
		position(frame->line), "end_line", position(frame->end_line), "col",
		position(frame->col), "end_col", position(frame->end_col), "ip",
		frame->ip <= INT64_MAX ? json_integer((json_int_t)frame->ip) : json_null(), "error",
		prb_json_text(frame->error));

	if (options->source)
		json_object_set_new(json, "source", prb_json_text(frame->source));
	if (options->locals)
		json_object_set_new(json, "locals", locals_json(frame));
	return json;
}

static json_t *thread_json(const struct prb_dump_thread *t)
{
	return json_pack("{si so so so ss so so ss? sb ss so so}", "tid", (int)t->tid, "name",
			 prb_json_text(t->name), "os_name", prb_json_text(t->os_name),
			 "interpreter",
			 t->interpreter < 0 ? json_null() : json_integer(t->interpreter), "state",
			 t->state ? t->state : "unknown", "idle_seconds",
			 rounded(t->idle_seconds, 1e6), "waits_for", prb_json_text(t->waits_for),
			 "gil", t->gil, "gc", t->gc, "read", reads[t->read], "pause_us",
			 rounded(t->pause_us, 1e3), "error", prb_json_text(t->error));
}

static struct prb_error *write_thread(const struct prb_dump_thread *t,
				      const struct prb_render_options *options, FILE *out)
{
	const struct prb_dump_frame *frame;

	fputc('{', out);
	PRB_TRY(prb_json_write_members(thread_json(t), out));
	fputs(",\"frames\":[", out);
	prb_vec_each (frame, &t->frames) {
		if (frame != t->frames.items)
			fputc(',', out);
		PRB_TRY(prb_json_write(frame_json(frame, options), out));
	}
	fputs("]}", out);
	return NULL;
}

struct prb_error *prb_render_json(const struct prb_dump *dump,
				  const struct prb_render_options *options, FILE *out)
{
	const struct prb_dump_thread *t;
	json_t *warnings = json_array();
	char *const *warning;

	prb_vec_each (warning, &dump->warnings)
		json_array_append_new(warnings, prb_json_text(*warning));

	fputc('{', out);
	PRB_TRY(prb_json_write_members(
		json_pack("{so so so si so}", "target", target_json(dump), "timestamp",
			  rounded(dump->timestamp, 1e6), "pause_us", rounded(dump->pause_us, 1e3),
			  "paused_threads", (int)dump->paused_threads, "warnings", warnings),
		out));
	fputs(",\"threads\":[", out);
	prb_vec_each (t, &dump->threads) {
		if (t != dump->threads.items)
			fputc(',', out);
		PRB_TRY(write_thread(t, options, out));
	}
	fputs("]}", out);
	return NULL;
}
