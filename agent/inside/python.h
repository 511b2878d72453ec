/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The process's CPython API, as a table of functions found by dlsym(), and its GIL, which
 * threads of ours acquire and drop. What they do with it is in agent/eval/enter_python.h.
 *
 * Nothing of Python's headers is used: only functions that are exported by every version from 3.4
 * to 3.15, so one agent serves all. A worker acquires the GIL as any other thread does.
 *
 * Threading: for the thread that the `struct prba_python_thread` is of, but for what says
 * otherwise.
 */
#ifndef PRB_AGENT_INSIDE_PYTHON_H
#define PRB_AGENT_INSIDE_PYTHON_H

#include <stdbool.h>

/** A thread of ours in the interpreter; all 0 at first. */
struct prba_python_thread {
	void *thread_state; /**< the thread's, for threading.local; NULL: none */
	int gil;	    /**< from PyGILState_Ensure() */
	int life;	    /**< of the interpreter, which may be started again */
	bool entered;	    /**< prba_finalization_enter() was called for it, by the main thread */
};

/**
 * Looks for a Python, again if there was none. True if there is one. Takes the loader's lock, so
 * not for the server's thread once it serves.
 */
bool prba_python_find(void);

/** "3.11.2", "" if none was found. Any thread. */
const char *prba_python_version(void);

/** Why code cannot be run now, or NULL (static). Any thread. */
const char *prba_python_refusal(void);
/** The refusal of an interpreter that is shutting down. */
extern const char prba_python_ending[];

/** Before 3.7 there may be no GIL yet; only the thread that is to hold it can create it. */
bool prba_python_lacks_gil(void);

/**
 * From here on the interpreter does not end before the GIL was acquired and dropped by the
 * functions below. False if it ends already.
 */
bool prba_python_enter(struct prba_python_thread *thread);
/** The opposite, for a worker that was let in by the main thread and acquires nothing. */
void prba_python_leave_place(struct prba_python_thread *thread);

/**
 * Acquires the GIL. The thread state lives as long as the connection, and with it what
 * threading.local has. False if the interpreter ends.
 */
bool prba_python_attach(struct prba_python_thread *thread);
/** Drops it, and keeps the thread state. */
void prba_python_detach(struct prba_python_thread *thread);
/** Drops it for good: what belongs to the thread is gone. */
void prba_python_drop(struct prba_python_thread *thread);

/**
 * As prba_python_attach(), for a pause: imports nothing that a thread of the program may be
 * importing, since that thread may be stopped.
 */
bool prba_python_acquire(struct prba_python_thread *thread);
/** Starts the world of a build without a GIL, and drops the GIL. */
void prba_python_let_go(struct prba_python_thread *thread);
/** Drops and acquires the GIL within a pause; not without a GIL. */
void prba_python_lend(struct prba_python_thread *thread);
void prba_python_take_back(struct prba_python_thread *thread);
/** After prba_python_enter(): acquires the GIL in its turn and drops it at once. */
void prba_python_take_turn(struct prba_python_thread *thread);

/** Why this Python cannot be paused, or NULL (static). */
const char *prba_python_pause_refusal(void);
/** The build has no GIL that could be held: its world is stopped and started. */
bool prba_python_stops_world(void);
void prba_python_start_world(void);
void prba_python_stop_world(void);

#endif
