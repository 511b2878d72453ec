/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file One look at the ranks of a job: the stacks of each, read from outside, and what its main
 * thread is at. No rank waits for another one's reading, and none is paused but for the moment
 * that a dump takes of a running thread.
 *
 * Threading: one thread at a time. A round owns its dumps and strings.
 */
#ifndef PRB_CLUSTER_LOOK_H
#define PRB_CLUSTER_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "cluster/jobs/job.h"
#include "dump/model/dump.h"

/** What looks at a rank, one after the other, tell of it (movement.h). */
enum prb_movement {
	PRB_STILL,   /**< the same stack, and the main thread used no processor to speak of */
	PRB_SPINS,   /**< the same stack, and the main thread never slept: a loop in C */
	PRB_MOVES,   /**< another stack, or it computes and sleeps in turn */
	PRB_UNKNOWN, /**< it could not be read each time */
};

struct prb_pace;
struct prb_call;
struct prb_flight;

/** A rank as it was seen at one moment. */
struct prb_seen {
	const struct prb_rank *rank; /**< borrowed from the job */
	struct prb_dump *dump;	     /**< NULL if it could not be read: see `error` */
	char *error;		     /**< why, or NULL */
	pid_t trains;		     /**< the thread that trains, if that is not the main thread; 0
					(training_thread.h) */
	const struct prb_dump_thread *main; /**< it or the main thread, the dump's; NULL: none */
	const char *collective; /**< name of the collective operation that the main thread is in,
				   the dump's; NULL if it is in none */
	const struct prb_dump_frame *caller; /**< the frame that called it; NULL if unknown */
	const struct prb_dump_frame *called; /**< the Python function of `collective`, or NULL */
	bool unnamed; /**< `collective` is a C or C++ function: which operation it is is unknown */
	bool gpu;     /**< the same: it waits for its GPU, mostly for a collective there */
	char state;   /**< of the main thread, as in stat; 0 if unknown */
	int64_t ran_ns; /**< processor time of the main thread so far; -1 if unknown */
	bool gone;	/**< there is no such process (any more) */
	bool unasked;	/**< the same, unless it is on a host that was not asked */
	char *worker;	/**< what the worker is at that its data loader waits for, or NULL */

	/* Of the first and the last look only. */
	struct prb_flight *flight; /**< what torch's flight recorder says (flight.h), or NULL */
	char *no_flight;	   /**< why it says nothing, or NULL: it was not asked */

	/* Of the last look only. */
	struct prb_call *call; /**< the arguments of `collective` (call.h), or NULL */
	enum prb_movement movement;
	bool entered;	   /**< it was in a collective at any look */
	char state_before; /**< `state` of an earlier look: another one than in the last, if any was
			    */
	char *cycle;	   /**< its threads that wait for each other's locks, in words, or NULL */
	char *holder;	   /**< the thread that holds the lock of the main thread; the same */
	struct prb_pace *pace; /**< of many looks (pace.h), or NULL */
};

struct prb_round {
	PRB_VEC(struct prb_seen) list; /**< one for each rank of the job, in its order */
	double seconds;		       /**< of the monotonic clock, when it began */
	double span;		       /**< of the last look: seconds since the first one */
	struct prb_pool *pool; /**< of the texts of dumps that came from elsewhere, or NULL */
};

/** What looks at one rank share: its process, and where Python is in it. Starts as {}. */
struct prb_watch {
	struct prb_target *target; /**< NULL: not opened yet */
	struct prb_dump_found found;
};
void prb_watch_deinit(struct prb_watch *watch);

/**
 * Looks at all ranks of @p job once; with @p native, at the C stacks of all threads too. The @p
 * last look is closer: at the workers that data loaders wait for, and at the arguments of
 * collectives. @p watches: one for each rank, or NULL; ranks that cannot be read have none
 * afterwards.
 */
struct prb_error *prb_round_make(const struct prb_job *job, bool native, bool last,
				 struct prb_watch *watches, struct prb_round *ret) PRB_MUST_CHECK;
void prb_round_deinit(struct prb_round *round);
#define prb_auto_round __attribute__((cleanup(prb_round_deinit)))

/**
 * Asks the flight recorder of each rank that was read: `flight` and `no_flight`. @p before: a round
 * in which they were asked already, or NULL; ranks that had no agent then have none.
 */
struct prb_error *prb_round_ask_recorders(struct prb_round *round, struct prb_watch *watches,
					  const struct prb_round *before) PRB_MUST_CHECK;

/** Looks at the main thread only, and at no worker. @p watch has a target. */
struct prb_error *prb_look_brief(struct prb_watch *watch, struct prb_seen *seen) PRB_MUST_CHECK;

/** Frees what it owns. */
void prb_seen_deinit(struct prb_seen *seen);

/** Sets `main`, `collective` and `caller` from the dump, which has threads. */
void prb_seen_find(struct prb_seen *seen);

/** "Trainer.step" or "step"; "?" for a frame without a name. */
const char *prb_frame_name(const struct prb_dump_frame *frame);

/** The innermost Python frame; NULL if there is none. */
const struct prb_dump_frame *prb_innermost(const struct prb_dump_thread *thread);

#endif
