/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What holds the memory that a process needs more and more of: two censuses of its objects,
 * some seconds apart. Nothing is stopped. Each takes processor time (of ours) and some 50 bytes for
 * each object, so it is bounded, and only made for a caller that looks often and says how much time
 * is left.
 *
 * Threading: that of the target.
 */
#ifndef PRB_JUDGE_HOLDER_H
#define PRB_JUDGE_HOLDER_H

#include "judge/judge.h"

struct prb_census;

struct prb_holding {
	char *name;	/**< "app.CACHE['a']", escaped; NULL: not known */
	double bytes;	/**< more than before, in what it holds */
	double seconds; /**< between the censuses; 0: there were none yet */
	/** Resident bytes more than before, and how many of them are in Python's objects. */
	double grown, in_objects;
};

/**
 * Finds what holds the growth between two censuses of one interpreter, @p seconds apart. @p ret has
 * `grown`, and the rest zero; its name is the caller's to free.
 */
struct prb_error *prb_holding_find(struct prb_census *before, struct prb_census *after,
				   double seconds, struct prb_holding *ret) PRB_MUST_CHECK;

/**
 * Continues the search for what holds the growing memory of the case; to be called at each look
 * while it grows. *ret: what is known by now. It is the case's.
 */
struct prb_error *prb_case_holder(struct prb_case *c,
				  const struct prb_holding **ret) PRB_MUST_CHECK;

/** Notes that the memory does not grow: a search that has begun ends if that is for long. */
void prb_case_end_search(struct prb_case *c);

/** NULL is allowed. */
void prb_holder_destroy(struct prb_holder *holder);

#endif
