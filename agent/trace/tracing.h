/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Breakpoints at Python lines before 3.12, by profile and trace functions instead of
 * sys.monitoring.
 *
 * All threads have a profile function of ours, which is called when functions start and return, and
 * a trace function only while code that has a breakpoint is what runs: that one is called at each
 * line, and makes everything slower. Both are functions of C, without an object, so the program's
 * own sys.gettrace() and sys.getprofile() do not show them. Of most code they only look up its file
 * name; agent/trace/tracing.py is asked about what is not known yet.
 *
 * The thread states of others are changed by functions of the interpreter, and where our functions
 * are in one is found, not known: see prove() in agent/trace/tracing.c. A thread of the program
 * that has a trace or profile function of its own is left alone.
 *
 * Threading: all is called with the GIL held, but for what is said at a function.
 */
#ifndef PRB_AGENT_TRACE_TRACING_H
#define PRB_AGENT_TRACE_TRACING_H

#include <stdbool.h>

#include "agent/inside/python_table.h"

enum { PRBA_TRACING_METHODS = 5 };

/** For the names of agent/trace/tracing.py, which says what they are. */
extern struct prba_method prba_tracing_methods[PRBA_TRACING_METHODS];

/** The interpreter had a function of ours, and may be in it still. Any thread. */
bool prba_tracing_was_on(void);
/** It has one, and will for as long as some thread does not run. Any thread. */
bool prba_tracing_stays(void);

/**
 * Has the thread of @p state, which steps, traced as long as breakpoints are: by the function that
 * calls for those, since a thread has one only. NULL: not any more. False: there are none, or the
 * program has a function of its own there.
 */
bool prba_tracing_step(void *state);

/**
 * The calling thread asks code of ours for an event, and nothing that runs on it meanwhile is
 * traced. The caller holds the GIL.
 */
bool prba_tracing_asks(void);

/** In a child after fork(). */
void prba_tracing_forked(void);

#endif
