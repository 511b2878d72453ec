/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A pause: all Python threads are held at the request of one client.
 *
 * The worker of that client's connection holds the GIL, or has stopped the world of a build without
 * one, until it is asked to end, its deadline passes or the client is gone: the kernel closes the
 * connection of a killed client. Nothing of Python runs on that thread.
 *
 * Code of other clients that is to be evaluated meanwhile is run by the holding worker itself. But
 * evaluated code drops the GIL each time it blocks, and after the switch interval if another thread
 * waits for it, and the program would run. So the client that pauses is asked to stop all other
 * threads first, which takes another process (ptrace).
 *
 * Threading: as said at each function.
 */
#ifndef PRB_AGENT_PAUSE_PAUSE_H
#define PRB_AGENT_PAUSE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/protocol.h"

struct prba_connection;

/**
 * The server's thread: @p c asks for a pause. NULL if it may pause, or only has to wait for a
 * request that was given up, or for the end of an earlier pause; else why not (the text is valid
 * until the next call).
 */
const char *prba_pause_claim(struct prba_connection *c);
/**
 * For the worker of @p c: waits until the pause is its own. False if the request was cancelled
 * before.
 */
bool prba_pause_await(struct prba_connection *c);
/** The claim of @p c ends, if it has one. Any thread. */
void prba_pause_disclaim(struct prba_connection *c);

/**
 * For the worker of @p c: acquires the GIL, takes a step out of the interpreter that was not at its
 * end, and stops the world of a build without a GIL. False if the interpreter is shutting down.
 */
bool prba_pause_take(struct prba_connection *c);

/**
 * For the worker of @p c, which has paused all Python threads: reports that to the client and holds
 * until the pause must end. Returns how it ended, after the GIL was dropped.
 */
enum prb_wire_outcome prba_pause_hold(struct prba_connection *c);

/** The server's thread: the pause of @p c, or of anyone if NULL, is to end. False: there is none.
 */
bool prba_pause_end(const struct prba_connection *c, enum prb_wire_outcome how);

/** Total duration of the pause so far, in µs; -1 if nothing is paused. Any thread. */
int64_t prba_pause_held_us(void);

/**
 * The client that has paused the process, as the process sees its pid (0: it cannot see it), and
 * since when, in µs of CLOCK_REALTIME. False if nothing is paused. Any thread.
 */
bool prba_pause_who(int32_t *ret_pid, int64_t *ret_since_us);

/**
 * Why a request of @p c was not begun in time, as a text: code of another client, or its pause. ""
 * if it is neither. The server's thread.
 */
enum { PRBA_PAUSE_REASON = 120 };
void prba_pause_explain(const struct prba_connection *c, char ret[PRBA_PAUSE_REASON]);

/** The server's thread: takes a frame of the types resume or frozen; NULL or why not (static). */
const char *prba_pause_request(struct prba_connection *c, const struct prb_wire_frame *frame);

/**
 * For the worker of @p c: makes the program step and waits until it is paused again. Returns the
 * outcome and its explanation (static): PRB_WIRE_REFUSED with "" if nothing is paused.
 */
enum prb_wire_outcome prba_pause_step(struct prba_connection *c, const char **text);

/** Outcomes of a job that was handed to the holder. */
enum prba_served {
	PRBA_NOT_PAUSED, /**< nothing: the worker does it itself */
	PRBA_SERVED,
	PRBA_NOT_SERVED, /**< it was cancelled before */
};

/**
 * For a worker that is to acquire the GIL: while something is paused, makes the holder do the job
 * by
 * @p run, and waits until that is done.
 */
enum prba_served prba_pause_serve(struct prba_connection *c,
				  void (*run)(struct prba_connection *c));

/**
 * Before code of @p c is interrupted, which needs the GIL and what the code waits for: while the
 * holder runs it, the program's threads are resumed. Any thread.
 */
void prba_pause_open(const struct prba_connection *c);

/**
 * For the holder: the code of @p c has run, and from now on no thread is resumed for it. True if
 * none could run until now.
 */
bool prba_pause_note_ran(struct prba_connection *c);

/** In a child after fork(). */
void prba_pause_forked(void);

#endif
