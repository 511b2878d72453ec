/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The part of a connection's worker that enters the interpreter: evaluates, completes,
 * pauses, steps. Code is run on the worker's thread, on the thread that holds a pause, or on the
 * main thread by a pending call.
 *
 * Threading: as said at each function.
 */
#ifndef PRB_AGENT_EVAL_ENTER_PYTHON_H
#define PRB_AGENT_EVAL_ENTER_PYTHON_H

#include <stdbool.h>

struct prba_connection;

/** Does the connection's job on the calling worker's thread, or makes another thread do it. */
void prba_work_do(struct prba_connection *c);

/**
 * Does the connection's job, to evaluate, on the calling thread of the program, which holds the GIL
 * or else is refused.
 */
void prba_work_here(struct prba_connection *c);

/**
 * For the connection's worker: removes the connection's objects and the worker's thread state from
 * the interpreter. Waits for the GIL.
 */
void prba_work_forget(struct prba_connection *c);

/** Raises KeyboardInterrupt in the running job. Waits for the GIL. */
void prba_work_interrupt(struct prba_connection *c);

/**
 * Takes out of the interpreter what was put there. Waits for the GIL. False if some of it stays in
 * use, and would call us.
 */
bool prba_work_release(void);

#endif
