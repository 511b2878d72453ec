/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/asyncio.h"

enum { TASK, NAME, DEPTH, FUNC, QUALNAME, FILE_, LINENO, END_LINENO, COL, END_COL, COROUTINE, OF };

static const struct prb_column columns[] = {
	[TASK] = {"task", PRB_COLUMN_INTEGER, "Address of the task, as in python.tasks",
		  .flags = PRB_COLUMN_KEY},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name of the task"},
	[DEPTH] = {"depth", PRB_COLUMN_INTEGER, "Place in the chain; 0 is the innermost frame"},
	[FUNC] = {"func", PRB_COLUMN_TEXT, "Name of the function"},
	[QUALNAME] =
		{"qualname", PRB_COLUMN_TEXT,
		 "Its name with classes and functions around it; NULL where it cannot be known"},
	[FILE_] = {"file", PRB_COLUMN_TEXT, "Source file, as the code names it"},
	[LINENO] = {"lineno", PRB_COLUMN_INTEGER, "Line that waits or runs, from 1"},
	[END_LINENO] = {"end_lineno", PRB_COLUMN_INTEGER,
			"Last line of that expression (Python 3.11 and later)"},
	[COL] = {"col", PRB_COLUMN_INTEGER,
		 "First column of that expression, from 0 (3.11 and later)", "bytes"},
	[END_COL] = {"end_col", PRB_COLUMN_INTEGER, "Column behind that expression", "bytes"},
	[COROUTINE] = {"coroutine", PRB_COLUMN_INTEGER,
		       "Address of the coroutine or generator; NULL for a function that it called"},
	[OF] = {"of", PRB_COLUMN_INTEGER, "Argument of the table: the task, as its address",
		.flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN},
	{},
};

static void put(struct prb_scan *scan, const struct prb_asyncio_task *task, size_t index)
{
	const struct prb_asyncio_task_frame *frame = &task->frames.items[index];

	prb_put_integer(scan, TASK, (int64_t)task->address);
	prb_put_integer(scan, OF, (int64_t)task->address);
	prb_put_static(scan, NAME, task->name);
	prb_put_integer(scan, DEPTH, (int64_t)(task->frames.count - 1 - index));
	prb_put_static(scan, FUNC, frame->code ? frame->code->name : NULL);
	prb_put_static(scan, QUALNAME, frame->qualname);
	prb_put_static(scan, FILE_, frame->code ? frame->code->file : NULL);
	prb_put_natural(scan, LINENO, frame->location.line > 0 ? frame->location.line : -1);
	prb_put_natural(scan, END_LINENO,
			frame->location.end_line > 0 ? frame->location.end_line : -1);
	prb_put_natural(scan, COL, frame->location.col);
	prb_put_natural(scan, END_COL, frame->location.end_col);
	if (frame->coroutine)
		prb_put_integer(scan, COROUTINE, (int64_t)frame->coroutine);
}

static bool is_wanted(const struct prb_scan *scan, const struct prb_asyncio_task *task)
{
	int64_t address;

	return (!prb_scan_key_integer(scan, TASK, &address) ||
		(uint64_t)address == task->address) &&
	       (!prb_scan_key_integer(scan, OF, &address) || (uint64_t)address == task->address);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_asyncio_readings *readings;
	struct prb_asyncio_reading **reading;
	const struct prb_asyncio_task *task;
	uint64_t place = 0;

	PRB_TRY(prb_asyncio_scan(scan, &readings));
	prb_vec_each (reading, &readings->list) {
		prb_vec_each (task, &(*reading)->tasks.list) {
			if (place++ < scan->position)
				continue;
			if (prb_scan_full(scan)) {
				scan->more = true;
				return NULL;
			}
			scan->position++;
			for (size_t i = task->frames.count; i-- > 0 && is_wanted(scan, task);) {
				PRB_TRY(prb_scan_row(scan));
				put(scan, task, i);
			}
		}
	}
	return NULL;
}

const struct prb_table prb_table_python_task_frames = {
	.schema = "python",
	.name = "task_frames",
	.doc = "Frames of the tasks of asyncio: the coroutines that await each other",
	.columns = columns,
	.rows = 500,
	.scan = scan,
};
