/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What is seen of the ranks of a job in one look: the stacks of each, and what its main
 * thread is at. look.h looks.
 *
 * Threading: one thread at a time. A round owns its dumps and strings.
 */
#ifndef PRB_CLUSTER_LOOKS_SEEN_H
#define PRB_CLUSTER_LOOKS_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "cluster/jobs/job.h"
#include "dump/dump.h"

/** Movement of a rank, from successive looks (movement.h). */
enum prb_movement {
	PRB_STILL,   /**< the same stack, and the main thread used no processor to speak of */
	PRB_SPINS,   /**< the same stack, and the main thread never slept: a loop in C */
	PRB_MOVES,   /**< another stack, or it computes and sleeps in turn */
	PRB_UNKNOWN, /**< it could not be read each time */
};

/** A `state` of our own: its control group is frozen. */
#define PRB_SEEN_FROZEN 'F'

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
	const struct prb_dump_frame *in_c;   /**< the C function of `collective`, or NULL */
	bool unnamed; /**< `collective` is a C or C++ function: which operation it is is unknown */
	bool gpu;     /**< the same: it waits for its GPU, mostly for a collective there */
	char state;   /**< of the main thread, as in stat; 0 if unknown */
	uint64_t progress; /**< hash of counters of the program (progress.h); 0: unknown */
	int64_t ran_ns;	   /**< processor time of the main thread so far; -1 if unknown */
	bool gone;	   /**< there is no such process (any more) */
	bool unasked;	   /**< the same, unless it is on a host that was not asked */
	char *worker;	   /**< what the worker is at that its data loader waits for, or NULL */

	/* Of the first and the last look only. */
	struct prb_flight *flight; /**< what torch's flight recorder says (flight.h), or NULL */
	char *no_flight;	   /**< why it says nothing, or NULL: it was not asked */

	/* Of the last look only. */
	struct prb_call *call; /**< the arguments of `collective` (call.h), or NULL */
	enum prb_movement movement;
	bool polls;   /**< it moves, but only within its innermost function: it has hardly used the
			 processor, and no number of the program has changed */
	bool entered; /**< it was in a collective at any look */
	char state_before; /**< `state` of an earlier look: another one than in the last, if any was
			    */
	char *cycle;	   /**< its threads that wait for each other's locks, in words, or NULL */
	char *holder;	   /**< the thread that holds the lock of the main thread; the same */
	char *chain;	   /**< what it waits for in the end (keeper.h), or NULL */
	pid_t keeper;	   /**< the last process of that; 0: none */
	bool holds;	   /**< that process holds a lock; another thread of it answers a socket */
	bool guessed;	   /**< that is one of several possible threads, not known to be it */
	char *end;	   /**< of one that has ended: how, or NULL (end.h) */
	char *end_log;	   /**< the same, as a log says it, or NULL */
	bool end_known;	   /**< one of these says why */
	struct prb_pace *pace; /**< of many looks (pace.h), or NULL */
};

struct prb_round {
	PRB_VEC(struct prb_seen) list; /**< one for each rank of the job, in its order */
	double seconds;		       /**< of the monotonic clock, when it began */
	double span;		       /**< of the last look: seconds since the first one */
	struct prb_pool *pool; /**< of the texts of dumps that came from elsewhere, or NULL */
};

/** State shared by the looks at one rank: its process, and where Python is in it. Starts as {}. */
struct prb_watch {
	struct prb_target *target; /**< NULL: not opened yet */
	struct prb_dump_found found;
	uint64_t ip;  /**< innermost frame of the last brief look */
	int32_t line; /**< the same */
};

#endif
