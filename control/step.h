/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A step of a paused process by its agent: finds the thread by reading the process from
 * outside, asks the agent, and says why the thread did not arrive.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CONTROL_STEP_H
#define PRB_CONTROL_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "control/client.h"
#include "dump/model/dump.h"
#include "dump/tasks/tasks.h"
#include "target/target.h"

struct prb_step_thread {
	pid_t tid;
	uint64_t ident;	    /**< Python's name of it */
	struct prb_str who; /**< "thread 4250 (worker-0)" */
	struct prb_str at;  /**< where it was stopped when it was found: "in count at prog.py:12" */
	struct prb_tasks tasks;
};

/** Finds a thread of @p t, its main thread if @p tid is 0. To be deinitialised in any case. */
struct prb_error *prb_step_find(struct prb_target *t, pid_t tid,
				struct prb_step_thread *ret) PRB_MUST_CHECK;
void prb_step_thread_deinit(struct prb_step_thread *thread);

/** The thread has ended, even if another thread has its tid now. */
bool prb_step_has_ended(struct prb_step_thread *thread);

/** The error for a thread that did. */
struct prb_error *prb_step_blame_end(const struct prb_target *t,
				     const struct prb_step_thread *thread) PRB_MUST_CHECK;

/** The thread in a dump; NULL: it is not there. */
const struct prb_dump_thread *prb_step_dumped(const struct prb_dump *dump, pid_t tid);

/** Appends "in count at prog.py:12". */
void prb_step_put_place(struct prb_str *s, const struct prb_dump_frame *frame);

/** Connects to the agent of a process that may be paused: PRB_ERROR_FAILED if it has none. */
struct prb_error *prb_step_connect(struct prb_target *t, struct prb_agent **ret) PRB_MUST_CHECK;

/** How a step is made. */
struct prb_step {
	uint32_t stride; /**< enum prb_wire_stride: to a line */
	uint32_t line;	 /**< of its function, at least that one; 0: any */
	double seconds;	 /**< at most; 0: five */
	/** Asked some times a second: true ends the step where the threads are. Or NULL. */
	bool (*is_enough)(void *context);
	void *context;
};

/** Where it ended, if a breakpoint of the pause was reached. To be deinitialised in any case. */
struct prb_step_stop {
	unsigned breakpoint;	/**< its number; 0: none was */
	uint64_t ident;		/**< Python's name of the thread that did */
	struct prb_str problem; /**< what its condition raised, or the exception; or empty */
};
void prb_step_stop_deinit(struct prb_step_stop *stop);

/**
 * Makes the thread run to its next line. PRB_ERROR_TIMEOUT if it reached none,
 * PRB_ERROR_NO_PROCESS if it ended, PRB_ERROR_CANCELLED if it was enough; the process is paused
 * again in any case.
 */
struct prb_error *prb_step_to_line(struct prb_target *t, struct prb_agent *agent,
				   const struct prb_step *step, struct prb_step_thread *thread,
				   struct prb_step_stop *stop) PRB_MUST_CHECK;

/**
 * Lets the process run until a thread reaches a breakpoint of the pause, it is enough, or the
 * seconds are over: then no breakpoint is in @p stop. `stride` and `line` do not count.
 */
struct prb_error *prb_step_to_break(struct prb_target *t, struct prb_agent *agent,
				    const struct prb_step *step,
				    struct prb_step_stop *stop) PRB_MUST_CHECK;

/** Lets the process run for @p seconds. */
struct prb_error *prb_step_for_time(struct prb_target *t, struct prb_agent *agent,
				    double seconds) PRB_MUST_CHECK;

#endif
