/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/thread_rows.h"

enum {
	TID,
	NAME,
	STATE,
	MAIN,
	USER_SECONDS,
	SYSTEM_SECONDS,
	START_TIME,
	VOLUNTARY,
	INVOLUNTARY,
	MINOR_FAULTS,
	MAJOR_FAULTS,
	CPU,
	CPUS_ALLOWED,
	POLICY,
	PRIORITY,
	NICE,
	WCHAN,
	NS_TID,
	ERROR,
};

static const struct prb_column columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread id", .flags = PRB_COLUMN_KEY},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name, as the kernel has it"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "running, idle, uninterruptible, stopped, traced, zombie or unknown"},
	[MAIN] = {"main", PRB_COLUMN_INTEGER, "1 for the first thread"},
	[USER_SECONDS] = {"user_seconds", PRB_COLUMN_REAL, "Processor time in programs", "s"},
	[SYSTEM_SECONDS] = {"system_seconds", PRB_COLUMN_REAL, "Processor time in the kernel", "s"},
	[START_TIME] = {"start_time", PRB_COLUMN_REAL, "When it was started, since the epoch", "s",
			PRB_COLUMN_TIME},
	[VOLUNTARY] = {"voluntary_switches", PRB_COLUMN_INTEGER,
		       "How often it gave up its processor to wait"},
	[INVOLUNTARY] = {"involuntary_switches", PRB_COLUMN_INTEGER,
			 "How often its processor was taken away"},
	[MINOR_FAULTS] = {"minor_faults", PRB_COLUMN_INTEGER,
			  "Page faults that needed no reading from disk"},
	[MAJOR_FAULTS] = {"major_faults", PRB_COLUMN_INTEGER, "Page faults that did"},
	[CPU] = {"cpu", PRB_COLUMN_INTEGER, "Processor it ran on last"},
	[CPUS_ALLOWED] = {"cpus_allowed", PRB_COLUMN_TEXT, "Processors it may run on, as 0-3,8"},
	[POLICY] = {"policy", PRB_COLUMN_TEXT,
		    "How it is scheduled: other, fifo, rr, batch, idle, deadline or ext"},
	[PRIORITY] = {"priority", PRB_COLUMN_INTEGER,
		      "The kernel's priority: 20 plus nice, or negative for real-time"},
	[NICE] = {"nice", PRB_COLUMN_INTEGER, "Niceness, from -20 to 19"},
	[WCHAN] = {"wchan", PRB_COLUMN_TEXT,
		   "Function of the kernel it sleeps in; NULL if it does not, or that is secret"},
	[NS_TID] = {"ns_tid", PRB_COLUMN_INTEGER, "Thread id that it has for itself"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why cells are missing"},
	{},
};

static void put_stat(struct prb_thread_row *task)
{
	struct prb_scan *scan = task->scan;
	const int64_t *numbers = task->numbers;
	double ticks = task->clock.ticks;

	prb_put_integer(scan, TID, task->tid);
	if (task->name.length)
		prb_put_text(scan, NAME, prb_str_text(&task->name));
	prb_put_static(scan, STATE, prb_state_name(task->state));
	prb_put_integer(scan, MAIN, task->tid == prb_instant_target(scan->instant)->pid);
	if (!task->made_up || numbers[PRB_STAT_USER] || numbers[PRB_STAT_SYSTEM]) {
		prb_put_real(scan, USER_SECONDS, (double)numbers[PRB_STAT_USER] / ticks);
		prb_put_real(scan, SYSTEM_SECONDS, (double)numbers[PRB_STAT_SYSTEM] / ticks);
	}
	if (task->made_up)
		return;
	if (task->clock_known)
		prb_put_real(scan, START_TIME,
			     task->clock.boot + (double)numbers[PRB_STAT_START] / ticks);
	prb_put_integer(scan, MINOR_FAULTS, numbers[PRB_STAT_MINOR_FAULTS]);
	prb_put_integer(scan, MAJOR_FAULTS, numbers[PRB_STAT_MAJOR_FAULTS]);
	prb_put_integer(scan, CPU, numbers[PRB_STAT_PROCESSOR]);
	prb_put_static(scan, POLICY, prb_policy_name(numbers[PRB_STAT_POLICY]));
	prb_put_integer(scan, PRIORITY, numbers[PRB_STAT_PRIORITY]);
	prb_put_integer(scan, NICE, numbers[PRB_STAT_NICE]);
}

static struct prb_error *put_status(struct prb_thread_row *task)
{
	struct prb_scan *scan = task->scan;
	prb_auto_str struct prb_str text = {};

	if (!prb_scan_wants(scan, VOLUNTARY) && !prb_scan_wants(scan, INVOLUNTARY) &&
	    !prb_scan_wants(scan, CPUS_ALLOWED) && !prb_scan_wants(scan, NS_TID))
		return NULL;
	PRB_TRY(prb_thread_file(task, &text, "status"));
	prb_put_field(scan, VOLUNTARY, prb_str_text(&text), "voluntary_ctxt_switches", 1);
	prb_put_field(scan, INVOLUNTARY, prb_str_text(&text), "nonvoluntary_ctxt_switches", 1);
	prb_put_field_text(scan, CPUS_ALLOWED, prb_str_text(&text), "Cpus_allowed_list");
	prb_put_last_number(scan, NS_TID, prb_str_text(&text), "NSpid");
	return NULL;
}

static struct prb_error *put(struct prb_thread_row *task)
{
	prb_auto_str struct prb_str wchan = {};

	put_stat(task);
	PRB_TRY(put_status(task));
	if (prb_scan_wants(task->scan, WCHAN))
		PRB_TRY(prb_thread_file(task, &wchan, "wchan"));
	if (wchan.length && strcmp(prb_str_text(&wchan), "0") != 0)
		prb_put_text(task->scan, WCHAN, prb_str_text(&wchan));
	prb_missing_put(task->scan, ERROR, &task->missing);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_thread_rows_scan(scan, TID, put);
}

const struct prb_table prb_table_process_threads = {
	.schema = "process",
	.name = "threads",
	.doc = "All threads of the process, as the kernel sees them",
	.columns = columns,
	.rows = 20,
	.scan = scan,
};
