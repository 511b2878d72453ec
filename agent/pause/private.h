/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by pause.c, which begins, holds and ends a pause, serve.c, which has code of other
 * clients run meanwhile, and step.c, which makes its steps. Internal to agent/pause/.
 *
 * Threading: all of `prba_pausing` under its lock, but for `wake`.
 */
#ifndef PRB_AGENT_PAUSE_PRIVATE_H
#define PRB_AGENT_PAUSE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "agent/pause/pause.h"
#include "agent/protocol.h"

struct prba_connection;

/** How far a job is that was handed over. */
enum {
	PRBA_JOB_NOT_HANDED,
	PRBA_JOB_QUEUED,
	PRBA_JOB_TAKEN,
	PRBA_JOB_ENTERS,   /**< the interpreter, to be lent the GIL */
	PRBA_JOB_ENTERED,  /**< and does not end before it is left */
	PRBA_JOB_SHUT_OUT, /**< the interpreter ends already */
	PRBA_JOB_TOOK_TURN,
	PRBA_JOB_RUNS,
	PRBA_JOB_RAN,
	PRBA_JOB_SERVED,
};

struct prba_pausing {
	_Atomic uint32_t wake; /**< changes with all that follows */
	pthread_mutex_t lock;
	struct prba_connection *by;	/**< the pausing connection, or the one about to pause */
	struct prba_connection *first;	/**< the queue of connections to be served */
	struct prba_connection *served; /**< the one being served */
	bool held;
	bool asked;		     /**< the client, to stop the other threads */
	bool frozen;		     /**< it did what it could */
	struct prb_wire_frozen said; /**< then */
	bool opened;		     /**< threads were resumed while code ran, */
	int64_t opened_us;	     /**< and when */
	bool lends;		     /**< the holder lends the GIL to a worker of ours */
	bool thaw_is_due;	     /**< as soon as the holder has the GIL again */
	pid_t holder;		     /**< the worker that holds all Python */
	bool ends;
	enum prb_wire_outcome how;
	struct prba_connection *steps; /**< whose step is wanted, or made; NULL: none is */
	bool step_begun;	       /**< the holder makes it */
	bool stepped;		       /**< it is through, */
	enum prb_wire_outcome step_how;
	const char *step_text;
	int64_t since_us, ran_us, until_us;
	int64_t begun_us; /**< `since_us` by CLOCK_REALTIME */
};

extern struct prba_pausing prba_pausing;

static inline int64_t prba_pause_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline void prba_pause_lock(void)
{
	pthread_mutex_lock(&prba_pausing.lock);
}

static inline void prba_pause_unlock(void)
{
	pthread_mutex_unlock(&prba_pausing.lock);
}

/** Unlocks and wakes the waiters for a change. */
void prba_pause_changed(void);

/**
 * Under the lock: the client whose code the holder runs, other than @p c; NULL if it runs none.
 */
static inline const struct prba_connection *prba_pause_others_code(const struct prba_connection *c)
{
	return prba_pausing.served != c ? prba_pausing.served : NULL;
}

/** "code of process 42 is running", of what prba_pause_others_code() gives. */
void prba_pause_describe_code(const struct prba_connection *other, char ret[PRBA_PAUSE_REASON]);

/** True if the pause must end. Call without the lock. */
bool prba_pause_has_to_end(void);

/** Sends a frame to the pausing client. */
void prba_pause_tell(struct prba_connection *by, uint16_t type, const void *data, size_t length);

/** Under the lock: the program may run although the holder is at work. */
void prba_pause_open_up(void);

/** Takes the pausing client's report on the other threads. */
void prba_pause_note_frozen(struct prba_connection *by, const struct prb_wire_frozen *said);

/** For the holder: has the other threads stopped; prba_pausing.said is what came of that. */
void prba_pause_freeze(struct prba_connection *by);

void prba_pause_set_state(struct prba_connection *c, int state);

/**
 * Waits while the holder runs Python for @p c. A thread of a build without a GIL may be stopped
 * with the lock of an object, such as a dict that all threads use. Code that needs the lock would
 * wait until the program runs, so the threads are resumed. (Before the code and after it the holder
 * waits for others than these.)
 */
void prba_pause_watch(struct prba_connection *c, uint32_t seen);

/** For the holder: the step that is wanted. False if Python could not be taken again. */
bool prba_pause_make_step(struct prba_connection *by);

/** For the holder: does the jobs that wait, with the other threads stopped. */
void prba_pause_serve_all(struct prba_connection *by);

#endif
