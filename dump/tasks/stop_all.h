/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Keeping a whole process still for an instant: threads that run are stopped, those that
 * sleep are only proven not to have run meanwhile.
 *
 *     prb_stop_all_begin(&stops, false);
 *     … copy …
 *     held = prb_stop_all_held(&stops);
 *     prb_stop_all_end(&stops, &us);
 *
 * If it did not hold, a thread ran that should have slept; the next time it is stopped too.
 *
 * Threading: all calls from the same thread of ours (a rule of ptrace). It borrows the tasks.
 */
#ifndef PRB_DUMP_TASKS_STOP_ALL_H
#define PRB_DUMP_TASKS_STOP_ALL_H

#include "base/error.h"
#include "base/vec.h"
#include "dump/tasks/tasks.h"
#include "target/ptrace/stop.h"

/** Starts as {.tasks = …, .patience = PRB_STOP_PATIENCE}. */
struct prb_stop_all {
	struct prb_tasks *tasks;
	double patience;	       /**< with other commands that read the process */
	PRB_VEC(struct prb_stop) list; /**< one for each task, in the same order */
	PRB_VEC(bool) restless;	       /**< the same: it ran when it should have slept */
};

/** Stops those that run, or @p everyone. prb_stop_all_end() is to be called also after an error. */
struct prb_error *prb_stop_all_begin(struct prb_stop_all *stops, bool everyone) PRB_MUST_CHECK;

/** True if nothing has run since. */
bool prb_stop_all_held(struct prb_stop_all *stops);

/** Lets all run; the longest stop into @p pause_us. */
void prb_stop_all_end(struct prb_stop_all *stops, double *pause_us);

void prb_stop_all_deinit(struct prb_stop_all *stops);

#endif
