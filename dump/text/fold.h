/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Folds identical parts of text output: threads, and recursive calls.
 */
#ifndef PRB_DUMP_TEXT_FOLD_H
#define PRB_DUMP_TEXT_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"
#include "dump/model/dump.h"

/** Threads shown as one entry, by the first of them. */
struct prb_fold_group {
	PRB_VEC(const struct prb_dump_thread *) threads;
};

struct prb_fold_groups {
	PRB_VEC(struct prb_fold_group) list;
};

/**
 * Groups the threads of @p dump in the order they are shown: the GIL holder and running threads
 * come first, else as in the dump. With @p fold, sleeping threads with the same stack are one
 * group; the first thread of the dump, the main thread, always stays alone.
 */
struct prb_error *prb_fold_threads(const struct prb_dump *dump, bool fold,
				   struct prb_fold_groups *ret) PRB_MUST_CHECK;
void prb_fold_groups_deinit(struct prb_fold_groups *groups);

/**
 * Sets @p alone[i], all false before, for each thread of @p dump that has an entry of its own when
 * threads are folded. Only these entries show an idle time: input for prb_idle_fill().
 */
struct prb_error *prb_fold_alone(const struct prb_dump *dump, bool *alone) PRB_MUST_CHECK;

/** Tasks or greenlets shown as one entry, by the first of them. */
struct prb_fold_tasks {
	PRB_VEC(const struct prb_dump_task *) tasks;
	bool same_wait; /**< all wait for the same */
};

struct prb_fold_task_groups {
	PRB_VEC(struct prb_fold_tasks) list;
};

/**
 * Groups the tasks of the thread @p tid of @p dump: the current one first, then those that wait, by
 * their stacks, the largest groups first. Those of no known thread belong to the first thread of
 * the dump.
 */
struct prb_error *prb_fold_tasks(const struct prb_dump *dump, pid_t tid, bool fold,
				 struct prb_fold_task_groups *ret) PRB_MUST_CHECK;
void prb_fold_tasks_deinit(struct prb_fold_task_groups *groups);

/** A part of a stack that repeats: `period` frames, `times` times. */
struct prb_fold_run {
	size_t period; /**< ≥ 1 */
	size_t times;  /**< ≥ 1; 1: it does not repeat, and `period` is 1 */
};

/**
 * The recursion that begins at @p frames[0], of @p count: the same call again and again, or a
 * short row of calls (functions that call each other, or the C frames between Python frames).
 */
struct prb_fold_run prb_fold_recursion(const struct prb_dump_frame *frames, size_t count);

/**
 * The number of @p frames, from the first on, by which `threading` starts every thread: Thread.run,
 * Thread._bootstrap_inner and Thread._bootstrap. 0 if there are fewer than two, or one of them has
 * details (variables, source, an error).
 */
size_t prb_fold_start(const struct prb_dump_frame *frames, size_t count);

#endif
