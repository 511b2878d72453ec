/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The process's CPython API, as a table of functions found by dlsym().
 *
 * Nothing of Python's headers is used: only functions that are exported by every version from 3.4
 * to 3.15, so one agent serves all. Code is run on a worker's thread that holds the GIL as any
 * other thread does, or on the main thread by a pending call.
 *
 * Threading: as said at each function.
 */
#ifndef PRB_AGENT_PYTHON_H
#define PRB_AGENT_PYTHON_H

#include <stdbool.h>

struct prba_connection;

/**
 * Looks for a Python, again if there was none. True if there is one. Takes the loader's lock, so
 * not for the server's thread once it serves.
 */
bool prba_python_find(void);

/** "3.11.2", "" if none was found. Any thread. */
const char *prba_python_version(void);

/** Why code cannot be run now, or NULL (static). Any thread. */
const char *prba_python_refusal(void);

/** Does the connection's job on the calling worker's thread, or has the main thread do it. */
void prba_python_do(struct prba_connection *c);

/**
 * For the connection's worker: takes out of the interpreter what is there of the connection, and
 * the worker's thread state. Waits for the GIL.
 */
void prba_python_forget(struct prba_connection *c);

/** Raises KeyboardInterrupt in the running job. Waits for the GIL. */
void prba_python_interrupt(struct prba_connection *c);

/**
 * Takes out of the interpreter what was put there. Waits for the GIL. False if some of it stays in
 * use, and would call us.
 */
bool prba_python_release(void);

/**
 * For the worker of a connection that pauses: takes all Python, by the GIL or by stopping the
 * world, and lets go of it. False if the interpreter is shutting down meanwhile.
 */
bool prba_python_take(struct prba_connection *c);
void prba_python_let_go(struct prba_connection *c);
/**
 * Lets go at the end of a pause. A connection that did nothing else has nothing left in the
 * interpreter then: it would have to take the GIL again for that, in the way of a pause that
 * begins.
 */
void prba_python_end_pause(struct prba_connection *c);
/** Lets go and takes within a pause, when no thread of the program can have run; not without a GIL.
 */
void prba_python_lend(struct prba_connection *c);
void prba_python_take_back(struct prba_connection *c);
/** For a worker: the interpreter does not end from here on until prba_python_take_turn(). False if
 * it ends already. */
bool prba_python_enter(struct prba_connection *c);
/** After that: acquires the GIL in its turn and drops it at once. */
void prba_python_take_turn(struct prba_connection *c);
/** Does the job of another connection on the holder's thread. */
void prba_python_serve(struct prba_connection *c);
/** The build has no GIL that could be held. */
bool prba_python_stops_world(void);
/** For the holder: the second half of letting go, and of taking. */
void prba_python_start_world(void);
void prba_python_stop_world(void);

enum prba_python_left {
	PRBA_PYTHON_LEFT,  /**< no thread of the interpreter is in our code, nor will be */
	PRBA_PYTHON_CALLS, /**< a pending call of ours may still be made */
	PRBA_PYTHON_ENDS,  /**< it cannot be known: the interpreter is shutting down */
};

/** After prba_python_release(): may our code go away? Waits for the GIL. */
enum prba_python_left prba_python_leave(void);

/** In a child after fork(). */
void prba_python_forked(void);

#endif
