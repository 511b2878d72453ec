/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "sql/tables/shared/frames.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/asyncio.h"

enum {
	TASK,
	NAME,
	STATE,
	CORO,
	WAITS_KIND,
	WAITS_FOR,
	SECONDS_LEFT,
	AWAITERS,
	CHAIN,
	DEPTH,
	FILE_,
	LINENO,
	LOOP,
	TID,
	INTERPRETER,
	READ,
	PAUSE_US,
	ERROR,
};

static const struct prb_column columns[] = {
	[TASK] = {"task", PRB_COLUMN_INTEGER, "Address of the task"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Its name; NULL in Python 3.7, where tasks have none"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "pending, running (the current task of its loop), done, failed (by an "
		   "exception), cancelled or unknown"},
	[CORO] = {"coro", PRB_COLUMN_TEXT,
		  "Qualified name of its coroutine; NULL once it has ended"},
	[WAITS_KIND] =
		{"waits_kind", PRB_COLUMN_TEXT,
		 "Kind of what it waits for: task, gather, wait, wait_for, group, sleep, "
		 "event, lock, condition, semaphore, barrier, queue, stream, socket, "
		 "subprocess, server, executor, future, or ready when it waits for its turn"},
	[WAITS_FOR] = {"waits_for", PRB_COLUMN_TEXT,
		       "What it waits for, in words; of a lock also which task holds it"},
	[SECONDS_LEFT] = {"seconds_left", PRB_COLUMN_REAL,
			  "Until its sleep or timeout ends, where that is known", "s"},
	[AWAITERS] = {"awaiters", PRB_COLUMN_TEXT, "Names of the tasks that wait for it"},
	[CHAIN] = {"chain", PRB_COLUMN_TEXT,
		   "Its coroutines from the outermost to the innermost, as in python.task_frames"},
	[DEPTH] = {"depth", PRB_COLUMN_INTEGER, "How many frames that are"},
	[FILE_] = {"file", PRB_COLUMN_TEXT,
		   "Source file of its innermost frame outside of asyncio itself"},
	[LINENO] = {"lineno", PRB_COLUMN_INTEGER, "Line where that frame is, from 1"},
	[LOOP] = {"loop", PRB_COLUMN_INTEGER, "Address of its event loop"},
	[TID] = {"tid", PRB_COLUMN_INTEGER,
		 "Thread that runs the loop; NULL if none does or it cannot be known"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER,
			 "Id of the interpreter; 0 is the main one"},
	[READ] = {"read", PRB_COLUMN_TEXT,
		  "How it was read: idle (the threads of all loops slept, exact), stopped (exact), "
		  "unstable (they ran)"},
	[PAUSE_US] = {"pause_us", PRB_COLUMN_REAL,
		      "How long these threads were stopped for it, added up", "µs"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why a part of the row could not be read"},
	{},
};

/* A name, or the address where it has none; separated from the previous ones. */
static void append_name(struct prb_str *text, const struct prb_asyncio_task *task)
{
	if (text->length)
		prb_str_puts(text, ", ");
	if (task->name)
		prb_str_puts(text, task->name);
	else
		prb_str_printf(text, "%#llx", (unsigned long long)task->address);
}

static void put_awaiters(struct prb_scan *scan, const struct prb_asyncio_tasks *tasks,
			 const struct prb_asyncio_task *task)
{
	prb_auto_str struct prb_str text = {};
	const size_t *index;

	if (!prb_scan_wants(scan, AWAITERS))
		return;
	prb_vec_each (index, &task->awaiters)
		append_name(&text, &tasks->list.items[*index]);
	if (text.length)
		prb_put_bytes(scan, AWAITERS, prb_str_text(&text), text.length);
}

static void put_chain(struct prb_scan *scan, const struct prb_asyncio_task *task)
{
	prb_auto_str struct prb_str text = {};
	const struct prb_asyncio_task_frame *frame;

	if (!prb_scan_wants(scan, CHAIN))
		return;
	prb_vec_each (frame, &task->frames) {
		if (text.length)
			prb_str_puts(&text, " → ");
		prb_str_puts(&text, frame->qualname ? frame->qualname
				    : frame->code   ? frame->code->name
						    : "?");
	}
	if (text.length)
		prb_put_bytes(scan, CHAIN, prb_str_text(&text), text.length);
}

static bool is_of_asyncio(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash && slash - file >= 7 && !strncmp(slash - 7, "asyncio", 7) &&
	       (slash - file == 7 || slash[-8] == '/');
}

static void put_place(struct prb_scan *scan, const struct prb_asyncio_task *task)
{
	for (size_t i = task->frames.count; i-- > 0;) {
		const struct prb_asyncio_task_frame *frame = &task->frames.items[i];

		if (!frame->code || (is_of_asyncio(frame->code->file) && i))
			continue;
		prb_put_static(scan, FILE_, frame->code->file);
		if (frame->location.line > 0)
			prb_put_integer(scan, LINENO, frame->location.line);
		return;
	}
}

static void put(struct prb_scan *scan, const struct prb_asyncio_reading *reading,
		const struct prb_asyncio_task *task)
{
	prb_put_integer(scan, TASK, (int64_t)task->address);
	prb_put_static(scan, NAME, task->name);
	prb_put_static(scan, STATE, prb_asyncio_task_state_name(task->state));
	prb_put_static(scan, CORO, task->coro);
	prb_put_static(scan, WAITS_KIND, task->waits_kind);
	prb_put_static(scan, WAITS_FOR, task->waits_for);
	if (task->wakes_at && reading->now)
		prb_put_real(scan, SECONDS_LEFT, task->wakes_at - reading->now);
	put_awaiters(scan, &reading->tasks, task);
	put_chain(scan, task);
	prb_put_integer(scan, DEPTH, (int64_t)task->frames.count);
	put_place(scan, task);
	if (task->loop)
		prb_put_integer(scan, LOOP, (int64_t)task->loop);
	if (task->tid)
		prb_put_integer(scan, TID, task->tid);
	prb_put_integer(scan, INTERPRETER, task->interp_id);
	prb_put_static(scan, READ, prb_read_name(reading->read));
	prb_put_real(scan, PAUSE_US, reading->pause_us);
	prb_put_static(scan, ERROR, task->error);
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
			PRB_TRY(prb_scan_row(scan));
			put(scan, *reading, task);
			scan->position++;
		}
	}
	return NULL;
}

const struct prb_table prb_table_python_tasks = {
	.schema = "python",
	.name = "tasks",
	.doc = "Tasks of asyncio, what they wait for, and their waiters",
	.columns = columns,
	.rows = 100,
	.scan = scan,
};
