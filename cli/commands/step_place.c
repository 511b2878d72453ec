/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/step_place.h"

#include "cli/common/output.h"
#include "dump/text/paths.h"
#include "dump/text/render_source.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "dump/dump.h"

enum { INDENT = 4 };

/** The only thread that is wanted of a dump; NULL: there is none. */
static const struct prb_dump_thread *find(const struct prb_dump *dump, pid_t tid)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads)
		if (thread->tid == tid)
			return thread;
	return NULL;
}

/** "in count at prog.py:12". */
static void put_place(struct prb_str *s, const struct prb_dump_frame *frame)
{
	const char *name = frame->qualname ? frame->qualname : frame->func;

	prb_str_puts(s, "in ");
	prb_text_escape(s, name ? name : "?");
	prb_str_puts(s, " at ");
	prb_text_escape(s, frame->file ? prb_path_last(frame->file) : "?");
	prb_str_printf(s, ":%d", frame->line);
}

static struct prb_error *keep(struct prb_step_thread *ret, const struct prb_dump_thread *thread)
{
	ret->ident = thread->ident;
	prb_str_printf(&ret->who, "thread %d", (int)thread->tid);
	if (thread->name) {
		prb_str_puts(&ret->who, " (");
		prb_text_escape(&ret->who, thread->name);
		prb_str_putc(&ret->who, ')');
	}
	if (thread->frames.count)
		put_place(&ret->at, &thread->frames.items[0]);
	return ret->who.failed || ret->at.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_step_find(struct prb_target *t, pid_t tid, struct prb_step_thread *ret)
{
	const struct prb_dump_options options = {
		.main_only = !tid, .tid = tid, .no_waits = true, .max_frames = 1};
	const struct prb_dump_thread *thread;
	prb_auto_dump struct prb_dump *dump = NULL;

	PRB_TRY(prb_dump_create(t, &options, &dump));
	ret->tid = tid ? tid : dump->main_tid;
	thread = find(dump, ret->tid);
	if (!thread || !thread->ident)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has no Python thread %d",
					 (int)t->pid, (int)ret->tid),
			"'probing %d debug --dump' shows those that it has", (int)t->pid);
	PRB_TRY(keep(ret, thread));
	return prb_tasks_create(t, &ret->tasks);
}

void prb_step_thread_deinit(struct prb_step_thread *thread)
{
	prb_str_deinit(&thread->who);
	prb_str_deinit(&thread->at);
	prb_tasks_deinit(&thread->tasks);
}

bool prb_step_has_ended(struct prb_step_thread *thread)
{
	struct prb_task_watch *task;

	prb_vec_each (task, &thread->tasks.list) {
		if (task->tid != thread->tid)
			continue;
		prb_task_note(&thread->tasks, task);
		return prb_task_has_ended(task);
	}
	return true;
}

struct prb_error *prb_step_blame_end(const struct prb_target *t,
				     const struct prb_step_thread *thread)
{
	struct prb_error *err =
		prb_error_create(PRB_ERROR_NO_PROCESS, "%s ended before it reached such a line",
				 prb_str_text(&thread->who));

	return prb_error_hint(err, "%s%s%sprocess %d is paused again",
			      thread->at.length ? "it was last seen " : "",
			      prb_str_text(&thread->at), thread->at.length ? "; " : "",
			      (int)t->pid);
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

	/* All of the line is to run, so nothing of it is marked. */
	plain.col = plain.end_col = -1;
	prb_str_printf(s, "%d stopped", (int)t->pid);
	if (thread->tid != t->pid)
		prb_str_printf(s, ", thread %d", (int)thread->tid);
	prb_str_putc(s, ' ');
	put_place(s, frame);
	prb_str_putc(s, '\n');
	prb_render_source(s, &plain, INDENT);
}

struct prb_error *prb_step_tell(struct prb_target *t, pid_t tid, bool as_json)
{
	const struct prb_dump_options options = {
		.tid = tid, .source = true, .no_waits = true, .max_frames = 1};
	const struct prb_dump_thread *thread;
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_str struct prb_str s = {};

	PRB_TRY(prb_dump_create(t, &options, &dump));
	thread = find(dump, tid);
	if (!thread || !thread->frames.count)
		return prb_error_create(
			PRB_ERROR_FAILED,
			"thread %d reached a line, but its place cannot be read%s%s", (int)tid,
			thread && thread->error ? ": " : "",
			thread && thread->error ? thread->error : "");
	if (as_json)
		put_json(&s, t, thread, &thread->frames.items[0]);
	else
		put_text(&s, t, thread, &thread->frames.items[0]);
	return prb_output(&s);
}
