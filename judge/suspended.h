/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Tasks and greenlets that wait, which the stacks of threads do not show.
 *
 * Threading: that of the target.
 */
#ifndef PRB_JUDGE_SUSPENDED_H
#define PRB_JUDGE_SUSPENDED_H

#include "judge/judge.h"

/** A dump with the tasks and greenlets of the case's process; NULL if it cannot be read. */
struct prb_error *prb_case_read_tasks(const struct prb_case *c,
				      struct prb_dump **ret) PRB_MUST_CHECK;

/** True for the main greenlet: its outermost frame is that of the program's file. */
bool prb_task_is_main(const struct prb_dump_task *task);

/** Appends "task Task-1 in `main` job.py:7, in Event.wait". */
void prb_case_put_task(struct prb_str *s, const struct prb_dump_task *task);

#endif
