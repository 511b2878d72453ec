/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The thread that does the requests of a connection, and how a request begins and is
 * interrupted.
 *
 * A connection has a worker of its own from its first request on, so that one client's endless loop
 * is no other's. Of workers that rest, one is kept.
 *
 * Threading: for the server's thread, but the debugger (debugger.h) interrupts the code of its own
 * connection by this, too.
 */
#ifndef PRB_AGENT_EVAL_WORKER_H
#define PRB_AGENT_EVAL_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/client/request.h"

/**
 * Begins to do what @p frame asks for: to evaluate, complete, pause or step. NULL, or why not
 * (static). If the job is not IDLE, but its client has the answer, the request waits for it.
 */
const char *prba_worker_start(struct prba_connection *c, const struct prb_wire_frame *frame);

/** Ends the worker of an IDLE job and frees what it has. */
void prba_worker_deinit(struct prba_connection *c);

/** Since when its worker waits for the next job; 0 if it does not, or there is none. */
int64_t prba_worker_rests_since(struct prba_connection *c);
/**
 * Ends the worker of an IDLE job, or makes it drop its objects in the interpreter, so that the next
 * call ends it; the next job gets a new one.
 */
void prba_worker_end(struct prba_connection *c);

/**
 * Makes it end soon: not started at all, or by KeyboardInterrupt. If @p outcome is not PRB_WIRE_OK
 * it is sent to the client now.
 */
void prba_worker_interrupt(struct prba_connection *c, enum prb_wire_outcome outcome);

/**
 * The client has left, or the agent stops: interrupts running code; then makes the worker remove
 * the connection's objects from the interpreter.
 */
void prba_worker_leave(struct prba_connection *c);

/** Applies deadlines; gives the next one in ms of prba_now_ms(), 0 if there is none. */
int64_t prba_worker_check(struct prba_connection *c, int64_t now);

/** Nothing of it is going on or in the interpreter, not even an interruption, so that
 * prba_worker_deinit() may be called. */
bool prba_worker_is_over(struct prba_connection *c);

#endif
