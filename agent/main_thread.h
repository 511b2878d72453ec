/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs functions on Python's main thread, by a pending call. The call runs when that thread
 * next executes Python code, and cannot be cancelled.
 *
 * Threading: for workers, but for what says otherwise.
 */
#ifndef PRB_AGENT_MAIN_THREAD_H
#define PRB_AGENT_MAIN_THREAD_H

#include <stdbool.h>

#include "agent/protocol.h"

struct prba_connection;

/** Runs the connection's job on this thread, which holds the GIL. True if the program's own Ctrl-C
 * came. */
typedef bool prba_main_run(struct prba_connection *c, enum prb_wire_outcome *outcome,
			   const char **text);

/** Before 3.7 there may be no GIL yet; it can only be made by the one who would hold it. */
bool prba_main_lacks_gil(void);

/**
 * Has the main thread run the job, or only make the GIL and greet if @p run is NULL. False if it
 * did not come by before the job was cancelled, or cannot be asked.
 */
bool prba_main_call(struct prba_connection *c, prba_main_run *run, enum prb_wire_outcome *outcome,
		    const char **text);

/**
 * Before the GIL of an interpreter is taken that was not greeted (life.h) by a thread of ours,
 * which it would not wait for if it ended just then: has the main thread greet it, and enter for
 * the job. NULL if the GIL may be taken, or it will be seen that it may not; else why not (static).
 *
 * Only programs that have Python inside can start another one. Their main thread may be unable to
 * come, as in a call that does not return: while it rests it ends nothing either.
 */
const char *prba_main_greet(struct prba_connection *c);

/** A call may still be made. Any thread. */
bool prba_main_is_called(void);
/** One was made, ever. Any thread. */
bool prba_main_was_called(void);

/** In a child after fork(). */
void prba_main_forked(void);

#endif
