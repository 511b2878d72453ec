/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Stops a whole process for an instant: running threads are stopped, sleeping threads are
 * only proven not to have run meanwhile.
 *
 *     prb_stop_all_begin(&stops, false);
 *     … copy …
 *     held = prb_stop_all_held(&stops);
 *     prb_stop_all_end(&stops, &us);
 *
 * If `held` is false, a thread woke up; the next time that thread is stopped too.
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
	double patience;	       /**< towards other commands that read the process */
	PRB_VEC(struct prb_stop) list; /**< one for each task, in the same order */
	PRB_VEC(bool) restless;	       /**< the same order: it ran when it should have slept */
};

/** Stops the running threads, or @p everyone. Call prb_stop_all_end() also after an error. */
struct prb_error *prb_stop_all_begin(struct prb_stop_all *stops, bool everyone) PRB_MUST_CHECK;

/** True if no thread has run since. */
bool prb_stop_all_held(struct prb_stop_all *stops);

/** Resumes all threads; *pause_us: the longest stop. */
void prb_stop_all_end(struct prb_stop_all *stops, double *pause_us);

void prb_stop_all_deinit(struct prb_stop_all *stops);

#endif
