/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Breakpoints at Python lines, for a debugger that has stopped the process.
 *
 * Python code of the agent (agent/trace/breaks.py) has the interpreter call us at the lines in
 * question; there we call probing_agent_break_stops(), an empty function at which the debugger has
 * a breakpoint of its own. It is called without the GIL, so that the debugger can evaluate
 * meanwhile.
 *
 * A debugger that has left, or died, must not cost the program anything for long, nor its life: a
 * breakpoint without a debugger would kill it. So at each hit we look whether our own function has
 * a breakpoint in it, and whether a process traces us; if not, all breakpoints are removed. While
 * the debugger evaluates, and other threads may have to run for that, threads at a breakpoint stay
 * in our code.
 *
 * Threading: as said at each function.
 */
#ifndef PRB_AGENT_TRACE_BREAKS_H
#define PRB_AGENT_TRACE_BREAKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/inside/export.h"
#include "agent/inside/python_table.h"

enum { PRBA_BREAKS_METHODS = 4 };

/** For the names of agent/trace/breaks.py: guard(function), listener(how), step(thread, stride,
 * line), pauser(). */
extern struct prba_method prba_breaks_methods[PRBA_BREAKS_METHODS];

/** Not 0 while the debugger makes threads run for itself: a thread that reaches a breakpoint stays
 * there. */
extern PRBA_EXPORT _Atomic uint32_t probing_agent_break_quiet;

/** Where a thread stops at a breakpoint: @p what is its number and what went wrong, if anything. */
PRBA_EXPORT void probing_agent_break_stops(const char *what);

/** Keeps what the function looks like without a breakpoint. Before one can be set. */
void prba_breaks_remember(void);

/** True if a debugger has its breakpoint in our function. Checked now and then only. */
bool prba_breaks_heard(void);

/**
 * Calls a function of agent/trace/breaks.py with up to two arguments; the thread stops if it gives
 * text. False if the program left no room for the call. NULL with an exception, which is the
 * program's. A new reference. The caller holds the GIL.
 */
object *prba_breaks_call(object *function, object *first, object *second);

/** Stops the calling thread as a breakpoint with that text does. The caller holds the GIL. */
void prba_breaks_stop(const char *what);

/** Each call of the interpreter begins and ends with these; the one above does so itself. */
void prba_breaks_enter(void);
void prba_breaks_exit(void);

/** A thread is in one of our functions, on behalf of the interpreter. The caller holds the GIL. */
bool prba_breaks_called(void);
/** How often one was, since the process began. */
uint32_t prba_breaks_calls(void);

/** In a child after fork(): its threads that were there are gone. */
void prba_breaks_forked(void);

#endif
