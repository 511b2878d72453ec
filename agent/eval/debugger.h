/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Evaluates code for a debugger that has stopped all threads and resumes only one of ours.
 *
 * A debugger calls probing_agent_debugger_start() on a thread of the program that is stopped at a
 * safe point; the call only creates a thread. From then on it only reads and writes
 * `probing_agent_debugger` while all threads are stopped, lets the thread run, and waits for it to
 * stop. So no thread of the program ever runs our code, and whatever the thread has to wait for
 * (the GIL, a lock of the C library) it waits for as any other thread does.
 *
 * The thread stops by sending itself SIGURG: a debugger sees that signal, and a program without a
 * debugger ignores it. So there is no breakpoint, of which the program would die if the debugger
 * is killed meanwhile. The kernel sends it the same signal from time to time, so that a debugger
 * gets the process back when the thread waits for what a stopped thread has.
 */
#ifndef PRB_AGENT_EVAL_DEBUGGER_H
#define PRB_AGENT_EVAL_DEBUGGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/inside/export.h"

enum {
	PRBA_DEBUGGER_VERSION = 5,
	PRBA_DEBUGGER_CODE = 64 << 10, /**< bytes of code at most */
};

/** The state of the thread. Brackets name the side that makes each change. */
enum prba_debugger_state {
	PRBA_DEBUGGER_NONE,	 /**< there is no thread [thread] */
	PRBA_DEBUGGER_IDLE,	 /**< it waits for code, and ends if none comes [thread] */
	PRBA_DEBUGGER_REQUESTED, /**< there is code [debugger, from IDLE or DONE] */
	PRBA_DEBUGGER_WAITING,	 /**< it waits for the interpreter [thread] */
	PRBA_DEBUGGER_RUNNING,	 /**< has the GIL and stops, then runs the code [thread] */
	PRBA_DEBUGGER_DONE,	 /**< there is a result: it stops, then is IDLE [thread] */
};

enum prba_debugger_asks {
	PRBA_DEBUGGER_EVALUATES, /**< Python, to be run */
	PRBA_DEBUGGER_BREAKS,	 /**< a request to agent/trace/breaks.py */
	PRBA_DEBUGGER_FRAME,	 /**< Python for a frame, which its first line names */
	PRBA_DEBUGGER_INTERRUPT, /**< none: to interrupt probing_agent_debugger_here() */
};

/** As debuggers know it (gdbplugin/core/evaluator.py): changes need a new version. */
struct prba_debugger {
	uint32_t version, code_max;
	_Atomic uint32_t state;
	int32_t tid; /**< of the thread */
	_Atomic uint32_t
		stops; /**< how often it has stopped: when RUNNING, with the GIL; when DONE */
	uint32_t asks; /**< enum prba_debugger_asks: what the code is */
	uint64_t code_length;
	uint64_t out, out_length; /**< frames of agent/protocol.h: the result */
	char code[PRBA_DEBUGGER_CODE];
};

extern PRBA_EXPORT struct prba_debugger probing_agent_debugger;

/** Starts the thread. 0; 1: there is one, whose timer goes on if it has code; else -errno. */
PRBA_EXPORT intptr_t probing_agent_debugger_start(void);

/**
 * Runs the code on the calling thread of the program, which holds the GIL and called something
 * outside of the interpreter. 0: there is a result; or -errno.
 */
PRBA_EXPORT intptr_t probing_agent_debugger_here(void);

/**
 * Interrupts the code that runs, as soon as threads run: 0, or -errno. For a thread of the program,
 * as the one above.
 */
PRBA_EXPORT intptr_t probing_agent_debugger_interrupt(void);

/** Ends the thread and waits until it has; what it runs is interrupted. */
void prba_debugger_stop(void);

/** A thread of the program runs code for probing_agent_debugger_here(), or did at any time. */
bool prba_debugger_is_here(void);
bool prba_debugger_was_here(void);

/** In a child after fork(). */
void prba_debugger_forked(void);

/** How often code was evaluated for a debugger. */
uint64_t prba_debugger_evaluations(void);

#endif
