/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/step_place.h"

#include "cli/output.h"
#include "cli/paths.h"
#include "cli/render_source.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/json.h"
#include "dwarf/base/str.h"
#include "dwarf/base/text.h"
#include "injector/dump.h"

enum { INDENT = 4 };

static void dump_guard(struct prb_dump **dump)
{
	if (*dump)
		prb_dump_destroy(*dump);
}

#define auto_dump __attribute__((cleanup(dump_guard)))

/** The only thread that is wanted of a dump; NULL: there is none. */
static const struct prb_dump_thread *find(const struct prb_dump *dump, pid_t tid)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads)
		if (thread->tid == tid)
			return thread;
	return NULL;
}

struct prb_error *prb_step_thread(struct prb_target *t, pid_t *tid, uint64_t *ret)
{
	const struct prb_dump_options options = {
		.main_only = !*tid, .tid = *tid, .no_waits = true, .max_frames = 1};
	const struct prb_dump_thread *thread;
	auto_dump struct prb_dump *dump = NULL;

	PRB_TRY(prb_dump_create(t, &options, &dump));
	if (!*tid)
		*tid = dump->main_tid;
	thread = find(dump, *tid);
	if (!thread || !thread->ident)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has no Python thread %d",
					 (int)t->pid, (int)*tid),
			"'probing %d debug --dump' shows those that it has", (int)t->pid);
	*ret = thread->ident;
	return NULL;
}

static void put_json(struct prb_str *s, const struct prb_target *t,
		     const struct prb_dump_thread *thread, const struct prb_dump_frame *frame)
{
	struct prb_json json = {.out = s};

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", t->pid);
	prb_json_integer(&json, "tid", thread->tid);
	prb_json_text(&json, "func", frame->func);
	prb_json_text(&json, "qualname", frame->qualname);
	prb_json_text(&json, "file", frame->file);
	prb_json_natural(&json, "line", frame->line);
	prb_json_text(&json, "source", frame->source);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

static void put_text(struct prb_str *s, const struct prb_target *t,
		     const struct prb_dump_thread *thread, const struct prb_dump_frame *frame)
{
	struct prb_dump_frame plain = *frame;
	const char *name = frame->qualname ? frame->qualname : frame->func;

	/* All of the line is to run, so nothing of it is marked. */
	plain.col = plain.end_col = -1;
	prb_str_printf(s, "%d stands", (int)t->pid);
	if (thread->tid != t->pid)
		prb_str_printf(s, ", thread %d", (int)thread->tid);
	prb_str_puts(s, " in ");
	prb_text_escape(s, name ? name : "?");
	prb_str_puts(s, " at ");
	prb_text_escape(s, frame->file ? prb_path_last(frame->file) : "?");
	prb_str_printf(s, ":%d\n", frame->line);
	prb_render_source(s, &plain, INDENT);
}

struct prb_error *prb_step_tell(struct prb_target *t, pid_t tid, bool as_json)
{
	const struct prb_dump_options options = {
		.tid = tid, .source = true, .no_waits = true, .max_frames = 1};
	const struct prb_dump_thread *thread;
	auto_dump struct prb_dump *dump = NULL;
	prb_auto_str struct prb_str s = {};

	PRB_TRY(prb_dump_create(t, &options, &dump));
	thread = find(dump, tid);
	if (!thread || !thread->frames.count)
		return prb_error_create(PRB_ERROR_FAILED,
					"thread %d came to a line, but where it stands cannot be "
					"read%s%s",
					(int)tid, thread && thread->error ? ": " : "",
					thread && thread->error ? thread->error : "");
	if (as_json)
		put_json(&s, t, thread, &thread->frames.items[0]);
	else
		put_text(&s, t, thread, &thread->frames.items[0]);
	return prb_output(&s);
}
