/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Threads that are stopped at a line, in a function of ours that the interpreter called
 * there. One may be made to raise an exception there when it goes on.
 *
 * Threading: the caller holds the GIL; without one only the first two are called.
 */
#ifndef PRB_AGENT_TRACE_STANDING_H
#define PRB_AGENT_TRACE_STANDING_H

#include <stdbool.h>

#include "agent/inside/python_table.h"

enum { PRBA_STANDING_METHODS = 2 };

/** For agent/trace/breaks.py: stands(thread), raises(thread, exception), which it is to raise. */
extern struct prba_method prba_standing_methods[PRBA_STANDING_METHODS];

/** The calling thread is about to stop, and has gone on. False: with the exception that it raises.
 */
void prba_standing_begin(void);
bool prba_standing_end(void);

/** In a child after fork(). */
void prba_standing_forked(void);

#endif
