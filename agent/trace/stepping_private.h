/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by stepping.c, which decides where a thread stops, and the two files that make the
 * interpreter call it: stepping_traced.c before 3.12, stepping_monitored.c from then on.
 *
 * Threading: by the thread that steps, as the interpreter calls it, but for what is said.
 */
#ifndef PRB_AGENT_TRACE_STEPPING_PRIVATE_H
#define PRB_AGENT_TRACE_STEPPING_PRIVATE_H

#include <stdbool.h>

#include "agent/inside/python_table.h"

/** How one has the interpreter call. */
struct prba_stepper {
	/** The preparation, which may run code of the program. Returns NULL or the reason of the
	 * failure (static). For the pausing worker. */
	const char *(*prepare)(bool into);
	/** For the thread that is in that frame now; the same. */
	const char *(*begin)(object *frame);
	/** For the pausing worker, or in a child after fork() for any thread. Why the interpreter
	 * calls no more (static), if it has ceased to; else "". */
	const char *(*end)(void);
};

extern const struct prba_stepper prba_stepper_traced, prba_stepper_monitored;

extern const char prba_stepping_tracer[]; /**< why not: the program has one */

/** The calling thread is the one that steps, which is on. Any thread. */
bool prba_stepping_is_mine(void);
/** There is nothing to be called for. Any thread. */
bool prba_stepping_is_over(void);

/** Stops if the step ends at a line of that frame. False: with an exception that was asked for. */
bool prba_stepping_line(const object *frame);

/**
 * A frame is being left, by returning or, if @p yields, yielding @p value or, if that is NULL, by
 * an exception: what the step goes on in, if it was of that, else NULL. A new reference; None:
 * nothing, so it ends with whatever begins next. A coroutine that waits in an `await` is not left.
 */
object *prba_stepping_left(object *frame, object *value, bool yields);

/** The same before 3.12, where a trace function is not told what yields. */
object *prba_stepping_returns(object *frame, object *value);

/** It ends in all that begins. */
bool prba_stepping_into(void);

/**
 * The calling thread of the program is about to change what is called, and was. False: the step is
 * over, nothing is to be changed.
 */
bool prba_stepping_busy(void);
void prba_stepping_idle(void);

#endif
