/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Identifies the stepping thread and its place, by reading the target from outside.
 */
#ifndef PRB_CLI_COMMANDS_STEP_PLACE_H
#define PRB_CLI_COMMANDS_STEP_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "target/target.h"
#include "dump/tasks.h"

struct prb_step_thread {
	pid_t tid;
	uint64_t ident;	    /**< Python's name of it */
	struct prb_str who; /**< "thread 4250 (worker-0)" */
	struct prb_str at;  /**< where it stood when it was found: "in count at prog.py:12" */
	struct prb_tasks tasks;
};

/** Finds a thread of @p t, its main thread if @p tid is 0. To be deinitialised in any case. */
struct prb_error *prb_step_find(struct prb_target *t, pid_t tid,
				struct prb_step_thread *ret) PRB_MUST_CHECK;
void prb_step_thread_deinit(struct prb_step_thread *thread);

/** There is no such thread any more, whoever has its number now. */
bool prb_step_has_ended(struct prb_step_thread *thread);

/** The error for a thread that did. */
struct prb_error *prb_step_blame_end(const struct prb_target *t,
				     const struct prb_step_thread *thread) PRB_MUST_CHECK;

/** Prints where the thread stands. */
struct prb_error *prb_step_tell(struct prb_target *t, pid_t tid, bool as_json) PRB_MUST_CHECK;

#endif
