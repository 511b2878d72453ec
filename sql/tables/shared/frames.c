/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/frames.h"

#include "sql/engine/instant.h"

enum {
	TID,
	THREAD,
	DEPTH,
	FUNC,
	QUALNAME,
	FILE_,
	LINENO,
	END_LINENO,
	COL,
	END_COL,
	FRAME_TYPE,
	MODULE,
	IP,
	OFFSET,
	SOURCE,
	INTERPRETER,
	READ,
	FULL_FUNC,
	ERROR,
	WANTED,
};

const struct prb_column prb_frame_columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread the frame is on",
		 .flags = PRB_COLUMN_KEY | PRB_COLUMN_THREAD},
	[THREAD] = {"thread", PRB_COLUMN_TEXT, "Name of the thread, as threading has it"},
	[DEPTH] = {"depth", PRB_COLUMN_INTEGER, "Place in the stack; 0 is the innermost frame",
		   .flags = PRB_COLUMN_KEY | PRB_COLUMN_DEPTH},
	[FUNC] = {"func", PRB_COLUMN_TEXT, "Name of the function"},
	[QUALNAME] =
		{"qualname", PRB_COLUMN_TEXT,
		 "Its name with classes and functions around it; NULL where it cannot be known"},
	[FILE_] = {"file", PRB_COLUMN_TEXT, "Source file, as the code names it"},
	[LINENO] = {"lineno", PRB_COLUMN_INTEGER, "Line that runs, from 1"},
	[END_LINENO] = {"end_lineno", PRB_COLUMN_INTEGER,
			"Last line of the expression that runs (Python 3.11 and later)"},
	[COL] = {"col", PRB_COLUMN_INTEGER,
		 "First column of the expression that runs, from 0 (3.11 and later)", "bytes"},
	[END_COL] = {"end_col", PRB_COLUMN_INTEGER, "Column behind that expression", "bytes"},
	[FRAME_TYPE] = {"frame_type", PRB_COLUMN_TEXT,
			"python, native, inline (a native function inlined into the next), or "
			"error where the stack could not be read further"},
	[MODULE] = {"module", PRB_COLUMN_TEXT, "Python module, or file of the native code",
		    .needs = PRB_NEED_MODULES},
	[IP] = {"ip", PRB_COLUMN_INTEGER,
		"Position in the bytecode in bytes; for native frames the program counter"},
	[OFFSET] = {"offset", PRB_COLUMN_INTEGER,
		    "Native program counter as an address in the file of its module"},
	[SOURCE] = {"source", PRB_COLUMN_TEXT, "Text of the line", .needs = PRB_NEED_SOURCE},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER,
			 "Id of the interpreter; 0 is the main one"},
	[READ] = {"read", PRB_COLUMN_TEXT,
		  "How the thread was read: idle (it slept, exact), stopped (exact), unstable (it "
		  "ran: outer frames that all reads agree on)"},
	[FULL_FUNC] = {"full_func", PRB_COLUMN_TEXT,
		       "Complete name of a C++ function where func is shortened; NULL otherwise"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT,
		   "Why a part of the row, or the rest of the stack, "
		   "could not be read"},
	[WANTED] = {"of", PRB_COLUMN_INTEGER, "Argument of the table: the thread, as tid",
		    .flags = PRB_COLUMN_KEY | PRB_COLUMN_THREAD | PRB_COLUMN_HIDDEN},
	{},
};

const char *prb_read_name(enum prb_read_kind read)
{
	return read == PRB_READ_IDLE ? "idle" : read == PRB_READ_STOPPED ? "stopped" : "unstable";
}

const struct prb_dump_thread *prb_threads_next(struct prb_scan *scan, const struct prb_dump *dump,
					       unsigned column)
{
	int64_t tid;
	bool one = prb_scan_key_integer(scan, column, &tid);

	while (scan->position < dump->threads.count) {
		const struct prb_dump_thread *thread = &dump->threads.items[scan->position++];

		if (!one || thread->tid == tid)
			return thread;
	}
	return NULL;
}

static void put_thread(struct prb_scan *scan, const struct prb_dump_thread *thread, int64_t depth)
{
	int64_t tid;

	prb_put_natural(scan, TID, thread->tid ? thread->tid : -1);
	prb_put_static(scan, THREAD, thread->name);
	prb_put_integer(scan, DEPTH, depth);
	prb_put_natural(scan, INTERPRETER, thread->interpreter);
	prb_put_static(scan, READ, prb_read_name(thread->read));
	if (prb_scan_key_integer(scan, WANTED, &tid))
		prb_put_integer(scan, WANTED, tid);
}

static void put_frame(struct prb_scan *scan, const struct prb_dump_frame *frame)
{
	static const char *const types[] = {"python", "native", "inline"};

	prb_put_static(scan, FUNC, frame->func);
	prb_put_static(scan, QUALNAME, frame->qualname);
	prb_put_static(scan, FULL_FUNC, frame->full_func);
	prb_put_static(scan, FILE_, frame->file);
	prb_put_natural(scan, LINENO, frame->line > 0 ? frame->line : -1);
	prb_put_natural(scan, END_LINENO, frame->end_line > 0 ? frame->end_line : -1);
	prb_put_natural(scan, COL, frame->col);
	prb_put_natural(scan, END_COL, frame->end_col);
	prb_put_static(scan, FRAME_TYPE, types[frame->kind]);
	prb_put_static(scan, MODULE, frame->module);
	prb_put_integer(scan, IP, (int64_t)frame->ip);
	if (frame->offset)
		prb_put_integer(scan, OFFSET, (int64_t)frame->offset);
	prb_put_static(scan, SOURCE, frame->source);
	prb_put_static(scan, ERROR, frame->error);
}

static bool depth_wanted(const struct prb_scan *scan, int64_t depth)
{
	int64_t wanted;

	return !prb_scan_key_integer(scan, DEPTH, &wanted) || wanted == depth;
}

static struct prb_error *frame_row(struct prb_scan *scan, const struct prb_dump_thread *thread,
				   const struct prb_dump_frame *frame, int64_t depth)
{
	PRB_TRY(prb_scan_row(scan));
	put_thread(scan, thread, depth);
	put_frame(scan, frame);
	return NULL;
}

static struct prb_error *thread_rows(struct prb_scan *scan, const struct prb_dump_thread *thread,
				     enum prb_frame_rows which)
{
	const struct prb_dump_frame *frame;
	int64_t depth = 0;

	prb_vec_each (frame, &thread->frames) {
		if (which != PRB_ALL_FRAMES && frame->own)
			continue;
		if (which == PRB_PYTHON_FRAMES && frame->kind != PRB_FRAME_PYTHON)
			continue;
		if (depth_wanted(scan, depth))
			PRB_TRY(frame_row(scan, thread, frame, depth));
		depth++;
	}
	if (!thread->error || (which == PRB_PYTHON_FRAMES && thread->interpreter < 0) ||
	    !depth_wanted(scan, depth))
		return NULL;
	/* The rest of the stack is unknown: say so in a row of its own. */
	PRB_TRY(prb_scan_row(scan));
	put_thread(scan, thread, depth);
	prb_put_static(scan, FRAME_TYPE, "error");
	prb_put_static(scan, ERROR, thread->error);
	return NULL;
}

static bool wanted(const struct prb_scan *scan, const struct prb_dump *dump,
		   const struct prb_dump_thread *thread, bool main_thread)
{
	int64_t tid;

	if (main_thread && !prb_scan_keyed(scan, TID) && !prb_scan_keyed(scan, WANTED))
		return thread->tid == dump->main_tid;
	return !prb_scan_key_integer(scan, WANTED, &tid) || tid == thread->tid;
}

struct prb_error *prb_frames_scan(struct prb_scan *scan, enum prb_frame_rows which,
				  bool main_thread)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump *dump;

	PRB_TRY(prb_instant_dump(scan->instant, &dump));
	if (prb_scan_keyed(scan, WANTED))
		PRB_TRY(prb_instant_check_thread(scan->instant));
	while (!prb_scan_full(scan)) {
		thread = prb_threads_next(scan, dump, TID);
		if (!thread)
			return NULL;
		if (wanted(scan, dump, thread, main_thread))
			PRB_TRY(thread_rows(scan, thread, which));
	}
	scan->more = true;
	return NULL;
}
