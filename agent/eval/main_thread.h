/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs functions on Python's main thread, by a pending call. The call runs when that thread
 * next executes Python code, and cannot be cancelled.
 *
 * Threading: for workers, but for what says otherwise.
 */
#ifndef PRB_AGENT_EVAL_MAIN_THREAD_H
#define PRB_AGENT_EVAL_MAIN_THREAD_H

#include <stdbool.h>

#include "agent/protocol.h"

struct prba_connection;

/** Runs the connection's job on this thread, which holds the GIL. True if the program's own Ctrl-C
 * came. */
typedef bool prba_main_run(struct prba_connection *c, enum prb_wire_outcome *outcome,
			   const char **text);

/**
 * Runs the job on the main thread or, if @p run is NULL, only makes the GIL and registers the exit
 * hook there. False if the main thread did not respond before the job was cancelled, or cannot be
 * asked.
 */
bool prba_main_call(struct prba_connection *c, prba_main_run *run, enum prb_wire_outcome *outcome,
		    const char **text);

/**
 * Call before acquiring the GIL of an interpreter without our exit hook (finalization.h), which
 * would not wait for a thread of ours when it ends. Makes the main thread register the hook and
 * enter for the job. Returns NULL if the GIL may be acquired, or if a later check will refuse;
 * otherwise the reason (static).
 *
 * Only programs that embed Python can start a second interpreter. Their main thread may be unable
 * to respond, for example in a call that does not return; it cannot end the interpreter then
 * either.
 */
const char *prba_main_register(struct prba_connection *c);

/** A call may still be made. Any thread. */
bool prba_main_is_called(void);
/** True if any call was ever made. Any thread. */
bool prba_main_was_called(void);

/** In a child after fork(). */
void prba_main_forked(void);

#endif
