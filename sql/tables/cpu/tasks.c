/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>

#include "base/cleanup.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/thread_rows.h"

enum {
	TID,
	NAME,
	STATE,
	CPU,
	USER_SECONDS,
	SYSTEM_SECONDS,
	RUN_SECONDS,
	WAIT_SECONDS,
	TIMESLICES,
	BLOCK_IO_SECONDS,
	ERROR,
};

static const struct prb_column columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread id", .flags = PRB_COLUMN_KEY},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name, as the kernel has it"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "running, idle, uninterruptible, stopped, traced, zombie or unknown"},
	[CPU] = {"cpu", PRB_COLUMN_INTEGER, "Processor it ran on last"},
	[USER_SECONDS] = {"user_seconds", PRB_COLUMN_REAL,
			  "Processor time in programs, counted in ticks", "s"},
	[SYSTEM_SECONDS] = {"system_seconds", PRB_COLUMN_REAL,
			    "Processor time in the kernel, counted in ticks", "s"},
	[RUN_SECONDS] = {"run_seconds", PRB_COLUMN_REAL, "Processor time in all, to the nanosecond",
			 "s"},
	[WAIT_SECONDS] = {"wait_seconds", PRB_COLUMN_REAL,
			  "Time it was ready to run and had no processor", "s"},
	[TIMESLICES] = {"timeslices", PRB_COLUMN_INTEGER, "How often it was given a processor"},
	[BLOCK_IO_SECONDS] = {"block_io_seconds", PRB_COLUMN_REAL,
			      "Time it waited for disks; 0 where the kernel does not count it",
			      "s"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why cells are missing"},
	{},
};

static struct prb_error *put_schedstat(struct prb_thread_row *task)
{
	struct prb_scan *scan = task->scan;
	prb_auto_str struct prb_str text = {};
	unsigned long long run, wait, slices;

	if (!prb_scan_wants(scan, RUN_SECONDS) && !prb_scan_wants(scan, WAIT_SECONDS) &&
	    !prb_scan_wants(scan, TIMESLICES))
		return NULL;
	PRB_TRY(prb_thread_file(task, &text, "schedstat"));
	if (sscanf(prb_str_text(&text), "%llu %llu %llu", &run, &wait, &slices) != 3)
		return NULL;
	prb_put_real(scan, RUN_SECONDS, (double)run / 1e9);
	prb_put_real(scan, WAIT_SECONDS, (double)wait / 1e9);
	prb_put_integer(scan, TIMESLICES, (int64_t)slices);
	return NULL;
}

static struct prb_error *put(struct prb_thread_row *task)
{
	struct prb_scan *scan = task->scan;
	const int64_t *numbers = task->numbers;
	double ticks = task->clock.ticks;

	prb_put_integer(scan, TID, task->tid);
	if (task->name.length)
		prb_put_text(scan, NAME, prb_str_text(&task->name));
	prb_put_static(scan, STATE, prb_state_name(task->state));
	if (!task->made_up || numbers[PRB_STAT_USER] || numbers[PRB_STAT_SYSTEM]) {
		prb_put_real(scan, USER_SECONDS, (double)numbers[PRB_STAT_USER] / ticks);
		prb_put_real(scan, SYSTEM_SECONDS, (double)numbers[PRB_STAT_SYSTEM] / ticks);
	}
	if (!task->made_up) {
		prb_put_integer(scan, CPU, numbers[PRB_STAT_PROCESSOR]);
		prb_put_real(scan, BLOCK_IO_SECONDS, (double)numbers[PRB_STAT_BLOCK_IO] / ticks);
	}
	PRB_TRY(put_schedstat(task));
	prb_missing_put(scan, ERROR, &task->missing);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_thread_rows_scan(scan, TID, put);
}

const struct prb_table prb_table_cpu_tasks = {
	.schema = "cpu",
	.name = "tasks",
	.doc = "What the threads of the target took of the processors since they were started",
	.columns = columns,
	.rows = 20,
	.scan = scan,
};
