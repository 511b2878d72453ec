/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/tables/shared/frames.h"
#include "sql/spec/table.h"

enum { TID, DEPTH, FUNC, NAME, TYPE, VALUE, KIND, ADDRESS, TYPE_ADDRESS, NUMBER };

static const struct prb_column columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread the frame is on",
		 .flags = PRB_COLUMN_KEY | PRB_COLUMN_THREAD},
	[DEPTH] = {"depth", PRB_COLUMN_INTEGER, "Frame, as in python.stacks",
		   .flags = PRB_COLUMN_KEY | PRB_COLUMN_DEPTH},
	[FUNC] = {"func", PRB_COLUMN_TEXT, "Name of the frame's function"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name of the variable"},
	[TYPE] = {"type", PRB_COLUMN_TEXT, "Type of its value", .needs = PRB_NEED_VALUES},
	[VALUE] = {"value", PRB_COLUMN_TEXT,
		   "repr() of its value, equal to a text with or without quotes; NULL if it is "
		   "unbound",
		   .flags = PRB_COLUMN_REPR, .needs = PRB_NEED_VALUES},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "argument, local, cell (used by an inner function), free (of an outer one), or "
		  "name (of a module or class body)"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER,
		     "Where the value lies: its id(), for python.attributes and python.items"},
	[TYPE_ADDRESS] = {"type_address", PRB_COLUMN_INTEGER, "Where its class lies"},
	[NUMBER] = {"number", PRB_COLUMN_ANY,
		    "An int of at most 64 bits, a bool, a float, or a tensor of one of them on the "
		    "CPU; else NULL"},
	{},
};

static const char *const kinds[] = {
	[PRB_LOCAL_ARGUMENT] = "argument", [PRB_LOCAL_LOCAL] = "local", [PRB_LOCAL_CELL] = "cell",
	[PRB_LOCAL_FREE] = "free",	   [PRB_LOCAL_NAME] = "name",
};

static struct prb_error *frame_rows(struct prb_scan *scan, const struct prb_dump_thread *thread,
				    const struct prb_dump_frame *frame, int64_t depth)
{
	const struct prb_dump_local *local;

	prb_vec_each (local, &frame->locals) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_natural(scan, TID, thread->tid ? thread->tid : -1);
		prb_put_integer(scan, DEPTH, depth);
		prb_put_static(scan, FUNC, frame->func);
		prb_put_static(scan, NAME, local->name);
		prb_put_static(scan, TYPE, local->type);
		prb_put_static(scan, VALUE, local->value);
		prb_put_static(scan, KIND, kinds[local->kind]);
		if (local->address)
			prb_put_integer(scan, ADDRESS, (int64_t)local->address);
		if (local->type_address)
			prb_put_integer(scan, TYPE_ADDRESS, (int64_t)local->type_address);
		if (local->number == PRB_NUMBER_INTEGER)
			prb_put_integer(scan, NUMBER, local->integer);
		if (local->number == PRB_NUMBER_REAL)
			prb_put_real(scan, NUMBER, local->real);
	}
	return NULL;
}

static struct prb_error *thread_rows(struct prb_scan *scan, const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;
	int64_t depth = 0, wanted;
	bool one = prb_scan_key_integer(scan, DEPTH, &wanted);

	prb_vec_each (frame, &thread->frames) {
		if (frame->kind != PRB_FRAME_PYTHON)
			continue;
		if (!one || depth == wanted)
			PRB_TRY(frame_rows(scan, thread, frame, depth));
		depth++;
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump *dump;

	PRB_TRY(prb_instant_dump(scan->instant, &dump));
	while (!prb_scan_full(scan)) {
		thread = prb_threads_next(scan, dump, TID);
		if (!thread)
			return NULL;
		PRB_TRY(thread_rows(scan, thread));
	}
	scan->more = true;
	return NULL;
}

const struct prb_table prb_table_python_locals = {
	.schema = "python",
	.name = "locals",
	.doc = "Variables of all Python frames, with their values",
	.columns = columns,
	.needs = PRB_NEED_THREADS | PRB_NEED_LOCALS,
	.needs_keyed = PRB_NEED_THREADS | PRB_NEED_LOCALS,
	.rows = 3000,
	.scan = scan,
};
