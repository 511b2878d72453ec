/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Ctrl-C during a query: ends the query and shows the rows read so far.
 *
 * Threading: one session at a time.
 */
#ifndef PRB_COMMAND_INTERRUPT_H
#define PRB_COMMAND_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

#include "sql/engine/session.h"

/**
 * From now on SIGINT is counted, and cancels the statement that @p session runs, if there is one. A
 * process that was started with SIGINT ignored goes on ignoring it.
 */
void prb_interrupt_catch(struct prb_session *session);

/**
 * Whether to catch a signal whose action was @p before. Signals that are ignored stay so, except
 * SIGINT: a shell makes background jobs of a script ignore it. Such a job still ignores the Ctrl-C
 * of its terminal (si_code is SI_KERNEL), and obeys 'kill -INT'.
 */
bool prb_interrupt_is_caught(int number, const struct sigaction *before);

/** Catches SIGTERM and SIGHUP in the same way, for commands that have something to write then. */
void prb_interrupt_catch_ends(void);

/** Forgets the signals that came. The next one is counted, and the one after it ends us. */
void prb_interrupt_last(void);

/** As above, with @p session; NULL while nothing runs that could be cancelled. */
void prb_interrupt_aim(struct prb_session *session);

/** The signals do again what they did. */
void prb_interrupt_release(void);

/** Blocks what is caught, but where prb_agent_receive() waits, or lets it come at any time again.
 */
void prb_interrupt_hold(bool hold);

/** Lets one in that came while it is blocked. */
void prb_interrupt_pass(void);

/** True if one came since they are caught, or since prb_interrupt_forget(). */
bool prb_interrupted(void);
/** How often it came. */
unsigned prb_interrupt_count(void);
void prb_interrupt_forget(void);

/** Ends the process by SIGINT, as its parent expects; returns only if that is ignored. */
void prb_interrupt_end(void);

#endif
