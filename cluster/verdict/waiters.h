/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The ranks that wait in collectives, by process group; and the ranks that they wait for.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_VERDICT_WAITERS_H
#define PRB_CLUSTER_VERDICT_WAITERS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"
#include "cluster/looks/seen.h"

/** How the calls of two ranks of one group differ; a later one is stronger. */
enum prb_difference {
	PRB_SAME_CALL,
	PRB_OTHER_PLACE, /**< the same operation, called from another line */
	PRB_OTHER_DATA,	 /**< tensors of another size or type */
	PRB_OTHER_ROOT,
	PRB_OTHER_OPERATION,
};

/** The ranks that wait in one process group. */
struct prb_waiters {
	const char *members;	      /**< "0-3,7", the call's; NULL: all ranks */
	bool known;		      /**< of all that wait in it the group is known */
	bool *is_member;	      /**< by the index in the round */
	size_t size;		      /**< members, including ranks that were not read */
	size_t inside;		      /**< members that wait in it */
	const struct prb_seen *first; /**< one of those */
	const struct prb_seen *other; /**< the rank whose call differs most from the first one's */
	enum prb_difference difference;
};

struct prb_waits {
	const struct prb_round *round;
	PRB_VEC(struct prb_waiters) groups; /**< without those of two ranks (send, recv) */
};

/** @p world: how many ranks the job has. */
struct prb_error *prb_waits_find(const struct prb_round *round, size_t world,
				 struct prb_waits *ret) PRB_MUST_CHECK;
void prb_waits_deinit(struct prb_waits *waits);
#define prb_auto_waits __attribute__((cleanup(prb_waits_deinit)))

/**
 * Notes the ranks of "0-3,7" by their index in the round; how many ranks it names. Malformed text,
 * as from another machine, names none.
 */
size_t prb_waits_note_members(const struct prb_round *round, const char *members, bool *ret);

/** True for operations for which all members give tensors of one size. */
bool prb_waits_is_uniform(const char *collective);

/** The index of rank @p rank in the round; -1 if it is not there. */
long prb_waits_index(const struct prb_round *round, long rank);

/** A rank that waits for the one at @p index; NULL if there is none. */
const struct prb_seen *prb_waits_for(const struct prb_waits *waits, size_t index);
/** The same, if the group or the peer is known for which it waits. */
const struct prb_seen *prb_waits_surely_for(const struct prb_waits *waits, size_t index);

/** How the calls of two ranks differ. */
enum prb_difference prb_waits_compare(const struct prb_seen *a, const struct prb_seen *b);

/** True if the rank sends to or receives from one other rank, and it is known which. */
bool prb_waits_for_one(const struct prb_seen *seen);

/** True if the rank sends or receives; whom it waits for may be unknown. */
bool prb_waits_in_pair(const struct prb_seen *seen);

#endif
