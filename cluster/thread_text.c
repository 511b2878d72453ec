/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/thread_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/look.h"

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

void prb_put_innermost(struct prb_str *s, const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame = prb_innermost(thread);

	if (!frame) {
		prb_str_puts(s, "no Python frame");
		return;
	}
	prb_text_escape(s, prb_frame_name(frame));
	prb_str_putc(s, ' ');
	prb_put_place(s, frame);
}

void prb_put_thread(struct prb_str *s, const struct prb_dump_thread *thread)
{
	prb_put_innermost(s, thread);
	prb_str_puts(s, ", ");
	prb_text_escape(s, thread->state);
	if (thread->idle_seconds >= 0) {
		prb_str_putc(s, ' ');
		prb_text_duration(s, thread->idle_seconds);
	}
	if (thread->waits_for) {
		prb_str_puts(s, " in ");
		prb_text_escape(s, thread->waits_for);
	}
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
