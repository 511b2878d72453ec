/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/tables/shared/frames.h"
#include "sql/spec/table.h"

enum {
	TID,
	NAME,
	OS_NAME,
	STATE,
	IDLE_SECONDS,
	WAITS_FOR,
	GIL,
	GC,
	MAIN,
	INTERPRETER,
	IDENT,
	FRAMES,
	READ,
	PAUSE_US,
	NOTE,
	ERROR,
};

static const struct prb_column columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER,
		 "Thread id, as the kernel has it; NULL if no thread runs this stack",
		 .flags = PRB_COLUMN_KEY | PRB_COLUMN_THREAD},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name, as threading has it"},
	[OS_NAME] = {"os_name", PRB_COLUMN_TEXT, "Name, as the kernel has it"},
	[STATE] =
		{"state", PRB_COLUMN_TEXT,
		 "running, idle, uninterruptible, stopped, traced, zombie, unknown, or threadless "
		 "for a stack that no thread runs"},
	[IDLE_SECONDS] = {"idle_seconds", PRB_COLUMN_REAL, "How long it has slept; NULL if unknown",
			  "s", .needs = PRB_NEED_IDLE},
	[WAITS_FOR] = {"waits_for", PRB_COLUMN_TEXT,
		       "What it waits for: system call, file, peer, lock and owner",
		       .needs = PRB_NEED_WAITS},
	[GIL] = {"gil", PRB_COLUMN_TEXT, "holds, waits, or NULL", .needs = PRB_NEED_WAITS},
	[GC] = {"gc", PRB_COLUMN_INTEGER, "1 while it collects garbage"},
	[MAIN] = {"main", PRB_COLUMN_INTEGER, "1 for the main thread"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER,
			 "Id of its interpreter; NULL for threads without Python"},
	[IDENT] = {"ident", PRB_COLUMN_INTEGER,
		   "What Python knows it by: threading.get_ident() in it; NULL without Python"},
	[FRAMES] = {"frames", PRB_COLUMN_INTEGER, "How many Python frames were read",
		    .needs = PRB_NEED_ALL_FRAMES},
	[READ] = {"read", PRB_COLUMN_TEXT, "How it was read: idle, stopped or unstable"},
	[PAUSE_US] = {"pause_us", PRB_COLUMN_REAL, "How long it was stopped to be read", "µs"},
	[NOTE] = {"note", PRB_COLUMN_TEXT, "Why no thread is known for the stack"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT,
		   "Why its stack, or the rest of it, could not be read"},
	{},
};

static int64_t count_frames(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;
	int64_t count = 0;

	prb_vec_each (frame, &thread->frames)
		count += frame->kind == PRB_FRAME_PYTHON;
	return count;
}

static void put(struct prb_scan *scan, const struct prb_dump *dump,
		const struct prb_dump_thread *thread)
{
	prb_put_natural(scan, TID, thread->tid ? thread->tid : -1);
	prb_put_static(scan, NAME, thread->name);
	prb_put_static(scan, OS_NAME, thread->os_name);
	prb_put_static(scan, STATE, thread->state);
	if (thread->idle_seconds >= 0)
		prb_put_real(scan, IDLE_SECONDS, thread->idle_seconds);
	prb_put_static(scan, WAITS_FOR, thread->waits_for);
	prb_put_static(scan, GIL, thread->gil);
	prb_put_integer(scan, GC, thread->gc);
	prb_put_integer(scan, MAIN, thread->tid == dump->main_tid);
	prb_put_natural(scan, INTERPRETER, thread->interpreter);
	prb_put_natural(scan, IDENT, thread->ident ? (int64_t)thread->ident : -1);
	prb_put_integer(scan, FRAMES, count_frames(thread));
	prb_put_static(scan, READ, prb_read_name(thread->read));
	prb_put_real(scan, PAUSE_US, thread->pause_us);
	prb_put_static(scan, NOTE, thread->note);
	prb_put_static(scan, ERROR, thread->error);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump *dump;

	PRB_TRY(prb_instant_dump(scan->instant, &dump));
	while ((thread = prb_threads_next(scan, dump, TID))) {
		PRB_TRY(prb_scan_row(scan));
		put(scan, dump, thread);
	}
	return NULL;
}

const struct prb_table prb_table_python_threads = {
	.schema = "python",
	.name = "threads",
	.doc = "Threads, what they do and what they wait for",
	.columns = columns,
	.needs = PRB_NEED_THREADS,
	.needs_keyed = PRB_NEED_THREADS,
	.rows = 20,
	.scan = scan,
};
