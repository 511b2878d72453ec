/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Ctrl-C during a query: ends the query and shows the rows read so far.
 *
 * Threading: one session at a time.
 */
#ifndef PRB_COMMAND_INTERRUPT_H
#define PRB_COMMAND_INTERRUPT_H

#include <stdbool.h>

#include "sql/engine/session.h"

/**
 * From now on SIGINT is counted, and cancels the statement that @p session runs, if there is one. A
 * process that was started with SIGINT ignored goes on ignoring it.
 */
void prb_interrupt_catch(struct prb_session *session);

/** Catches it from now on for as long as we live, however often others catch and release it. */
void prb_interrupt_keep(void);

/** As above, with @p session; NULL while nothing runs that could be cancelled. */
void prb_interrupt_aim(struct prb_session *session);

/** SIGINT does again what it did. */
void prb_interrupt_release(void);

/** Blocks SIGINT, but where prb_agent_receive() waits, or lets it come at any time again. */
void prb_interrupt_hold(bool hold);

/** Lets one in that came while SIGINT is blocked. */
void prb_interrupt_pass(void);

/** True if SIGINT came since it is caught, or since prb_interrupt_forget(). */
bool prb_interrupted(void);
/** How often it came. */
unsigned prb_interrupt_count(void);
void prb_interrupt_forget(void);

/** Ends the process by SIGINT, as its parent expects; returns only if that is ignored. */
void prb_interrupt_end(void);

#endif
