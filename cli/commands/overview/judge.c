/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derives a process's state and its troubles from its threads. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/overview/overview.h"

/* From so much on, something is wrong. */
static const unsigned MANY_LOCK_WAITERS = 2, MANY_GIL_WAITERS = 4;
static const double GIL_ASLEEP_SECONDS = 1, NEAR_LIMIT = 0.9;
static const int64_t MUCH_SWAP = 100 << 20;

void prb_overview_row_clear(struct prb_overview_row *row)
{
	char **text;

	free(row->main.waits_for);
	free(row->main.func);
	free(row->main.qualname);
	free(row->main.file);
	row->main = (struct prb_overview_main){.idle_seconds = -1};
	row->gil_holder = 0;
	row->gil_idle = -1;
	row->gil_waiters = row->lock_waiters = row->deadlocked = row->stuck = 0;
	prb_vec_each (text, &row->troubles)
		free(*text);
	prb_vec_free(&row->troubles);
}

/** The thread that holds what @p thread waits for; 0 if that is not known. */
static pid_t owner_of(const struct prb_dump_thread *thread)
{
	static const char MARK[] = "held by ";
	const char *found = thread->waits_for ? strstr(thread->waits_for, MARK) : NULL;

	return found ? (pid_t)strtol(found + strlen(MARK), NULL, 10) : 0;
}

static const struct prb_dump_thread *find(const struct prb_dump *dump, pid_t tid)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads)
		if (tid && thread->tid == tid)
			return thread;
	return NULL;
}

/** True if the thread waits, by way of at most so many others, for itself. */
static bool is_deadlocked(const struct prb_dump *dump, const struct prb_dump_thread *thread)
{
	enum { LONGEST = 32 };
	const struct prb_dump_thread *at = find(dump, owner_of(thread));

	for (unsigned n = 0; at && n < LONGEST; n++, at = find(dump, owner_of(at)))
		if (at->tid == thread->tid)
			return true;
	return false;
}

static void count_thread(struct prb_overview_row *row, const struct prb_dump *dump,
			 const struct prb_dump_thread *thread)
{
	if (thread->gil && !strcmp(thread->gil, "holds")) {
		row->gil_holder = thread->tid;
		row->gil_idle = strcmp(thread->state, "running") ? thread->idle_seconds : -1;
	}
	row->gil_waiters += thread->gil && !strcmp(thread->gil, "waits");
	row->stuck += !strcmp(thread->state, "uninterruptible");
	if (!owner_of(thread))
		return;
	row->lock_waiters++;
	row->deadlocked += is_deadlocked(dump, thread);
}

static struct prb_error *copy(const char *text, char **ret)
{
	return text ? prb_str_copy(text, ret) : NULL;
}

static struct prb_error *take_main(struct prb_overview_row *row,
				   const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;

	row->main.tid = thread->tid;
	row->main.state = thread->state;
	row->main.idle_seconds = thread->idle_seconds;
	PRB_TRY(copy(thread->waits_for, &row->main.waits_for));
	prb_vec_each (frame, &thread->frames) {
		if (frame->kind != PRB_FRAME_PYTHON)
			continue;
		row->main.line = frame->line;
		PRB_TRY(copy(frame->func, &row->main.func));
		PRB_TRY(copy(frame->qualname, &row->main.qualname));
		return copy(frame->file, &row->main.file);
	}
	return NULL;
}

struct prb_error *prb_overview_judge(struct prb_overview_row *row)
{
	const struct prb_dump_thread *thread;

	prb_overview_row_clear(row);
	prb_vec_each (thread, &row->dump->threads)
		count_thread(row, row->dump, thread);
	if (!row->dump->threads.count)
		return prb_str_copy("no thread of it runs Python", &row->error);
	/* The main thread is first, if it runs Python. */
	return take_main(row, row->dump->threads.items);
}

static struct prb_error *add(struct prb_overview_row *row, char *text)
{
	char **place = text ? prb_vec_push(&row->troubles) : NULL;

	if (!place) {
		free(text);
		return prb_error_nomem();
	}
	*place = text;
	return NULL;
}

static struct prb_error *memory_trouble(struct prb_overview_row *row)
{
	double used = row->limit > 0 ? (double)row->limit_used / (double)row->limit : 0;

	if (used >= NEAR_LIMIT)
		PRB_TRY(add(row, prb_format("memory at %.0f %% of its group's limit", used * 100)));
	if (row->swap > MUCH_SWAP)
		PRB_TRY(add(row, prb_format("%lld MB swapped out", (long long)(row->swap >> 20))));
	return NULL;
}

static struct prb_error *thread_trouble(struct prb_overview_row *row, double now)
{
	double idle = row->gil_idle < 0 ? -1 : row->gil_idle + now - row->read;

	if (row->deadlocked)
		PRB_TRY(add(row, prb_format("deadlock of %u threads", row->deadlocked)));
	else if (row->lock_waiters >= MANY_LOCK_WAITERS)
		PRB_TRY(add(row, prb_format("%u threads wait for locks", row->lock_waiters)));
	if (row->stuck)
		PRB_TRY(add(row, strdup("waits for a disk or device")));
	if (row->gil_holder && idle > GIL_ASLEEP_SECONDS)
		PRB_TRY(add(row, strdup("GIL held by a sleeping thread")));
	if (row->gil_waiters >= MANY_GIL_WAITERS)
		PRB_TRY(add(row, prb_format("%u threads wait for the GIL", row->gil_waiters)));
	if (row->main.state && !strcmp(row->main.state, "stopped"))
		PRB_TRY(add(row, strdup("stopped by a signal")));
	return NULL;
}

struct prb_error *prb_overview_trouble(struct prb_overview_row *row, double now)
{
	char **text;

	prb_vec_each (text, &row->troubles)
		free(*text);
	prb_vec_free(&row->troubles);
	if (row->ended)
		return add(row, strdup("has ended"));
	if (row->info.refusal || row->error)
		PRB_TRY(add(row, strdup("cannot be read")));
	PRB_TRY(thread_trouble(row, now));
	return memory_trouble(row);
}
