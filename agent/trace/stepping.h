/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Steps: a paused program runs until one of its threads reaches its next line.
 *
 * The pausing worker (agent/pause/pause.h) begins a step and releases Python. The interpreter calls
 * us at the lines of that thread: before 3.12 by a trace function of it alone, from then on by
 * sys.monitoring, for the code that it is in, and for what is called where that matters. There the
 * thread says that it has come, and waits until the pausing thread has acquired the GIL again.
 * However the step ended, all hooks are removed from the interpreter then; a child after fork()
 * does so by itself, when it is first called.
 *
 * All of it is C, so the inspected stack has no frames of ours, and the pausing thread keeps the
 * GIL while it begins the step.
 *
 * Threading: for the pausing worker, but for what is said at a function.
 */
#ifndef PRB_AGENT_TRACE_STEPPING_H
#define PRB_AGENT_TRACE_STEPPING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/protocol.h"

/**
 * Sees to it that the thread will stop; NULL, or why not (static). The caller holds the GIL, or,
 * without one, while the world runs and the program's threads are stopped. The thread changes
 * @p wake, and wakes its waiters, when it comes to its line.
 */
const char *prba_stepping_begin(const struct prb_wire_step *step, _Atomic uint32_t *wake);

/**
 * The same while a debugger has stopped the program: the thread stops at its line as at a
 * breakpoint (agent/trace/breaks.h), and the interpreter's next call removes the hooks of the step.
 * @p line: it goes on to this line of its function, at least, or out of it; 0: to any.
 */
const char *prba_stepping_begin_alone(const struct prb_wire_step *step, int line);

/** The thread has come to its line. Any thread. */
bool prba_stepping_arrived(void);

/** Removes the hooks of a step from the interpreter, if there is one. As the beginning. */
void prba_stepping_end(void);

/** Takes out what is left of a step whose thread has come to its line, as the end does. False: a
 * step is on, and stays so. */
bool prba_stepping_settle(void);

/** Why the thread of the last step could not come to its line any more (static); else "". */
const char *prba_stepping_lost(void);

/**
 * The GIL was acquired, or cannot be: the thread that waits at its line goes on, as far as it can.
 * True if there was one.
 */
bool prba_stepping_release(void);

/** Who would stop at a breakpoint of a pause (agent/trace/pausing.py). */
enum prba_pauser {
	PRBA_PAUSER_GONE,  /**< nobody: there is no pause */
	PRBA_PAUSER_HOLDS, /**< the program is paused: a thread that comes to one waits there */
	PRBA_PAUSER_STEPS, /**< a step is on, which ends there */
};
enum prba_pauser prba_stepping_pauser(void);

/** A pause begins, or ends: threads that wait at its breakpoints go on then. Any thread. */
void prba_stepping_own(bool on);

/**
 * The calling thread has come to a breakpoint of the pause, and ends the step; @p what is "NUMBER
 * PROBLEM". While a step of another thread to its line is on, it waits for that for a moment. The
 * caller holds the GIL, which is released meanwhile.
 */
void prba_stepping_break(const char *what);

/** The calling thread goes on from a breakpoint; a step of it may have begun there. The caller
 * holds the GIL. */
void prba_stepping_goes_on(void);

/** Where the last step ended: "" at its line, else "NUMBER IDENT PROBLEM" of a breakpoint. */
const char *prba_stepping_stop(void);

/** There was a step: the interpreter may be in a function of ours still. Any thread. */
bool prba_stepping_was_on(void);

/** In a child after fork(). */
void prba_stepping_forked(void);

#endif
