/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/thread_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "dump/model/program_frame.h"

const char *prb_frame_name(const struct prb_dump_frame *frame)
{
	return frame->qualname ? frame->qualname : frame->func ? frame->func : "?";
}

static const char *file_name(const struct prb_dump_frame *frame)
{
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

	return slash ? slash + 1 : frame->file;
}

void prb_put_place(struct prb_str *s, const struct prb_dump_frame *frame)
{
	prb_text_escape(s, file_name(frame) ? file_name(frame) : "?");
	if (frame->line > 0)
		prb_str_printf(s, ":%d", frame->line);
}

static void put_frame(struct prb_str *s, const struct prb_dump_frame *frame)
{
	prb_text_escape(s, prb_frame_name(frame));
	prb_str_putc(s, ' ');
	prb_put_place(s, frame);
}

/** Appends @p before and the frame of the program that has called @p frame of a library. */
static void put_program(struct prb_str *s, const char *before, const struct prb_dump_thread *thread,
			const struct prb_dump_frame *frame)
{
	const struct prb_dump_frame *program =
		prb_dump_is_library(frame) ? prb_dump_program_frame(thread) : NULL;

	if (!program)
		return;
	prb_str_puts(s, before);
	put_frame(s, program);
}

void prb_put_caller(struct prb_str *s, const struct prb_dump_thread *thread,
		    const struct prb_dump_frame *frame)
{
	prb_put_place(s, frame);
	put_program(s, ", by ", thread, frame);
}

void prb_put_innermost(struct prb_str *s, const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame = prb_dump_innermost(thread);

	if (!frame) {
		prb_str_puts(s, "no Python frame");
		return;
	}
	put_frame(s, frame);
	put_program(s, ", called by ", thread, frame);
}

void prb_put_thread_name(struct prb_str *s, const struct prb_dump_thread *thread)
{
	prb_str_printf(s, "thread %d", (int)thread->tid);
	if (!thread->name)
		return;
	prb_str_putc(s, ' ');
	prb_text_escape(s, thread->name);
}

void prb_put_thread(struct prb_str *s, const struct prb_dump_thread *thread)
{
	prb_put_innermost(s, thread);
	prb_str_puts(s, ", ");
	prb_text_escape(s, thread->state);
	if (thread->in_c) {
		prb_str_puts(s, " in C: ");
		prb_text_escape(s, thread->in_c);
	}
	if (thread->idle_seconds >= 0) {
		prb_str_putc(s, ' ');
		prb_text_duration(s, thread->idle_seconds);
	}
	if (thread->waits_for) {
		prb_str_puts(s, " in ");
		prb_text_escape(s, thread->waits_for);
	}
	if (thread->gil && !strcmp(thread->gil, "holds") && strcmp(thread->state, "running") != 0)
		prb_str_puts(s, ", and holds the GIL");
	if (thread->error) {
		prb_str_puts(s, "; ");
		prb_text_escape(s, thread->error);
	}
}

long prb_number_behind(const char *text, const char *words)
{
	const char *found = text ? strstr(text, words) : NULL;

	return found ? strtol(found + strlen(words), NULL, 10) : 0;
}
