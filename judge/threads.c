/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/model/program_frame.h"

/* How dump/waits/ and dump/read/ say it. What stands before the mark is ours, not the target's. */
/* A program may choose any name for a thread, also one with sentences like ours. */
enum { NAME_COLUMNS = 60 };
static const char FUTEX[] = "futex: ", HELD[] = " held by ";

bool prb_thread_is(const struct prb_dump_thread *thread, const char *state)
{
	return thread->state && !strcmp(thread->state, state);
}

static bool gil_is(const struct prb_dump_thread *thread, const char *word)
{
	return thread->gil && !strcmp(thread->gil, word);
}

bool prb_thread_is_agents(const struct prb_dump_thread *thread)
{
	return thread->os_name && !strcmp(thread->os_name, "probing-eval");
}

bool prb_thread_holds_gil(const struct prb_dump_thread *thread)
{
	return gil_is(thread, "holds");
}

bool prb_thread_waits_for_gil(const struct prb_dump_thread *thread)
{
	return gil_is(thread, "waits");
}

static bool in_futex(const struct prb_dump_thread *thread)
{
	return thread->waits_for && !strncmp(thread->waits_for, FUTEX, strlen(FUTEX));
}

bool prb_thread_waits_inside(const struct prb_dump_thread *thread)
{
	return in_futex(thread) && !prb_thread_waits_for_gil(thread);
}

bool prb_thread_sleeps(const struct prb_dump_thread *thread)
{
	return thread->waits_for && strstr(thread->waits_for, ": sleep");
}

bool prb_thread_waits_outside(const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	if (!enders->kind || !enders->endless)
		return false;
	return enders->word.inode || (enders->count && !in_futex(thread));
}

bool prb_thread_waits_for_held_lock(const struct prb_dump_thread *thread)
{
	return thread->waits_for && strstr(thread->waits_for, HELD);
}

static bool waits_for_lock(const struct prb_dump_thread *thread)
{
	return thread->enders.kind && !strcmp(thread->enders.kind, "lock");
}

pid_t prb_thread_owner(const struct prb_dump_thread *thread)
{
	return waits_for_lock(thread) ? thread->enders.tid : 0;
}

pid_t prb_thread_awaited(const struct prb_dump_thread *thread)
{
	return thread->enders.kind ? thread->enders.tid : 0;
}

bool prb_thread_awaits_alone(const struct prb_dump_thread *thread)
{
	return prb_thread_awaited(thread) && thread->enders.alone;
}

bool prb_frame_is(const struct prb_dump_frame *frame, const char *function, const char *file_end)
{
	return frame->kind == PRB_FRAME_PYTHON && frame->func && frame->file &&
	       !strcmp(frame->func, function) && prb_text_ends(frame->file, file_end);
}

const struct prb_dump_frame *prb_thread_frame(const struct prb_dump_thread *thread,
					      const char *function, const char *file_end)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (prb_frame_is(frame, function, file_end))
			return frame;
	return NULL;
}

const struct prb_dump_thread *prb_case_thread(const struct prb_case *c, pid_t tid)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &c->dump->threads)
		if (tid && thread->tid == tid)
			return thread;
	return NULL;
}

double prb_case_idle(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	return thread->idle_seconds < 0 ? -1 : thread->idle_seconds + c->since;
}

bool prb_case_moved(const struct prb_case *c, const struct prb_dump_thread *thread, double seconds)
{
	double idle = prb_case_idle(c, thread);

	return idle >= 0 && idle < seconds;
}

struct prb_futex_call prb_case_futex_call(const struct prb_case *c,
					  const struct prb_dump_thread *thread)
{
	enum { OPERATION_PRIVATE = 128 }; /* FUTEX_PRIVATE_FLAG */
	prb_auto_str struct prb_str text = {};
	unsigned long long address, operation, limit;

	if (!c->target || !thread->tid || !in_futex(thread))
		return (struct prb_futex_call){};
	prb_error_destroy(
		prb_target_read_file(c->target, &text, "task/%d/syscall", (int)thread->tid));
	/* NUMBER ADDRESS OPERATION VALUE TIMEOUT …: futex() takes the address of the time. */
	if (sscanf(prb_str_text(&text), "%*d %llx %llx %*x %llx", &address, &operation, &limit) !=
	    3)
		return (struct prb_futex_call){};
	return (struct prb_futex_call){.endless = !limit,
				       .limited = limit,
				       .own = operation & OPERATION_PRIVATE,
				       .address = address};
}

bool prb_case_waits_without_limit(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	return prb_case_futex_call(c, thread).endless;
}

/** "MainThread", "Thread-1 (take)": names of one word, and as Python makes them. */
static bool is_plain(const char *name)
{
	static const char WORD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_.-<>/";
	size_t length = strspn(name, WORD);

	if (length > NAME_COLUMNS || !name[length])
		return length <= NAME_COLUMNS;
	if (name[length] != ' ' || name[length + 1] != '(')
		return false;
	length += 2;
	length += strspn(name + length, WORD);
	return length < NAME_COLUMNS && name[length] == ')' && !name[length + 1];
}

void prb_case_put_thread(struct prb_str *s, const struct prb_dump_thread *thread)
{
	const char *name = thread->name ? thread->name : thread->os_name;
	prb_auto_str struct prb_str text = {};

	if (thread->tid)
		prb_str_printf(s, "%d", (int)thread->tid);
	if (!name)
		return;
	if (thread->tid)
		prb_str_putc(s, ' ');
	if (is_plain(name)) {
		prb_str_puts(s, name);
		return;
	}
	prb_text_escape(&text, name);
	/* Quotes inside of it must not look like its end. */
	for (size_t i = 0; i < text.length; i++)
		if (text.data[i] == '"')
			text.data[i] = '\'';
	s->failed = s->failed || text.failed;
	prb_str_putc(s, '"');
	prb_text_cut(s, prb_str_text(&text), NAME_COLUMNS);
	prb_str_putc(s, '"');
}

void prb_case_put_frame(struct prb_str *s, const struct prb_dump_frame *frame)
{
	const char *name = frame->qualname ? frame->qualname : frame->func;
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

	prb_str_putc(s, '`');
	prb_text_escape(s, name ? name : "?");
	prb_str_putc(s, '`');
	if (frame->file) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, slash ? slash + 1 : frame->file);
	}
	if (frame->line > 0)
		prb_str_printf(s, ":%d", (int)frame->line);
}

bool prb_case_put_place(struct prb_str *s, const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame = prb_dump_innermost(thread), *program;

	if (!frame)
		return false;
	prb_case_put_frame(s, frame);
	program = prb_dump_is_library(frame) ? prb_dump_program_frame(thread) : NULL;
	if (program) {
		prb_str_puts(s, " called by ");
		prb_case_put_frame(s, program);
	}
	return true;
}

void prb_case_put_doing(struct prb_str *s, const struct prb_case *c,
			const struct prb_dump_thread *thread)
{
	double idle = prb_case_idle(c, thread);
	size_t before;

	prb_str_puts(s, "in ");
	before = s->length;
	if (prb_case_put_place(s, thread))
		prb_str_puts(s, ", ");
	else
		prb_str_truncate(s, before - strlen("in "));
	prb_text_escape(s, thread->state ? thread->state : "unknown");
	if (idle >= 0 && !prb_thread_is(thread, "running")) {
		prb_str_putc(s, ' ');
		prb_text_duration(s, idle);
	}
	if (thread->waits_for) {
		prb_str_puts(s, " in ");
		prb_text_escape(s, thread->waits_for);
	}
	if (prb_thread_holds_gil(thread))
		prb_str_puts(s, ", holds the GIL");
}

void prb_case_put_reading(struct prb_str *s, const struct prb_case *c)
{
	size_t count = c->dump->threads.count;

	prb_str_printf(s, "the stack%s of %zu thread%s", count == 1 ? "" : "s", count,
		       count == 1 ? "" : "s");
}

void prb_case_put_command(struct prb_str *s, const struct prb_case *c, const char *command)
{
	if (!c->words)
		return;
	prb_str_puts(s, "probing -t ");
	prb_text_argument(s, c->words);
	prb_str_printf(s, " %s", command);
}

struct prb_error *prb_finding_thread(struct prb_finding *finding, const struct prb_case *c,
				     const struct prb_dump_thread *thread)
{
	struct prb_str *line;

	PRB_TRY(prb_finding_line(finding, thread->tid, &line));
	prb_case_put_thread(line, thread);
	prb_str_putc(line, ' ');
	prb_case_put_doing(line, c, thread);
	return prb_finding_tid(finding, thread->tid);
}
