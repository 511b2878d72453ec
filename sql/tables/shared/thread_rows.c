/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/thread_rows.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"

struct prb_error *prb_thread_file(struct prb_thread_row *task, struct prb_str *ret,
				  const char *name)
{
	struct prb_target *target = prb_instant_target(task->scan->instant);
	struct prb_error *err =
		prb_target_read_file(target, ret, "task/%d/%s", (int)task->tid, name);

	return prb_missing_add(task->scan, &task->missing, err, name);
}

/** A thread that has ended is not an error; its folder is empty, or gone. */
static bool ended(struct prb_scan *scan, struct prb_error **err)
{
	struct prb_target *target = prb_instant_target(scan->instant);
	prb_auto_str struct prb_str text = {};

	if (!*err || ((*err)->code != PRB_ERROR_NOT_FOUND && (*err)->code != PRB_ERROR_NO_PROCESS))
		return false;
	if (target->live) {
		struct prb_error *gone = prb_target_read_file(target, &text, "stat");

		if (gone) {
			prb_error_destroy(*err);
			*err = gone;
			return false;
		}
	}
	prb_error_destroy(*err);
	*err = NULL;
	return true;
}

static struct prb_error *task_row(struct prb_thread_row *task,
				  struct prb_error *(*put)(struct prb_thread_row *task))
{
	struct prb_scan *scan = task->scan;
	prb_auto_str struct prb_str text = {};
	struct prb_stat stat;
	struct prb_error *err = prb_target_read_file(prb_instant_target(scan->instant), &text,
						     "task/%d/stat", (int)task->tid);

	if (ended(scan, &err))
		return NULL;
	PRB_TRY(err);
	if (!prb_stat_parse(prb_str_text(&text), &stat) ||
	    !prb_stat_numbers(prb_str_text(&text), task->numbers))
		return prb_error_create(PRB_ERROR_BAD_DATA, "stat of thread %d is malformed",
					(int)task->tid);
	task->state = stat.state;
	task->made_up = !task->numbers[PRB_STAT_START] && !task->numbers[PRB_STAT_VSIZE];
	prb_put_comm(&task->name, stat.comm, stat.comm_length);
	PRB_TRY(prb_scan_row(scan));
	return put(task);
}

static struct prb_error *scan_task(struct prb_scan *scan, pid_t tid,
				   struct prb_error *(*put)(struct prb_thread_row *task))
{
	struct prb_thread_row task = {.scan = scan, .tid = tid};

	task.clock_known = prb_fact_clock(scan, &task.clock);
	struct prb_error *err = task_row(&task, put);
	prb_str_deinit(&task.name);
	prb_missing_deinit(&task.missing);
	return err;
}

struct prb_error *prb_thread_rows_scan(struct prb_scan *scan, unsigned column,
				       struct prb_error *(*put)(struct prb_thread_row *task))
{
	const char *tids;
	int64_t wanted;
	bool one = prb_scan_key_integer(scan, column, &wanted);

	PRB_TRY(prb_fact_list(scan, PRB_FACT_TASKS, &tids));
	while (tids[scan->position]) {
		const char *line = tids + scan->position;
		long tid = strtol(line, NULL, 10);

		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		scan->position += strcspn(line, "\n");
		scan->position += tids[scan->position] == '\n';
		if (tid > 0 && tid <= INT_MAX && (!one || tid == wanted))
			PRB_TRY(scan_task(scan, (pid_t)tid, put));
	}
	return NULL;
}
