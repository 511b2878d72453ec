/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/pause/step_place.h"

#include "command/output.h"
#include "dump/text/source_lines.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "dump/dump.h"

enum { INDENT = 4 };

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
	prb_step_put_place(s, frame);
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
	thread = prb_step_dumped(dump, tid);
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
