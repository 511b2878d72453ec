/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How late the rank is that the others wait for, at each step of training, and where in its
 * program it is meanwhile.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_LOOKS_LATE_H
#define PRB_CLUSTER_LOOKS_LATE_H

#include "cluster/looks/pace.h"

struct prb_late {
	const struct prb_seen *rank; /**< the round's; NULL: none is surely late */
	double seconds;		     /**< that the others wait for it at each step; < 0: unknown */
	long steps;		     /**< that were seen; -1: unknown */
	double others_wait;	     /**< share of time in collectives, the median */
	struct prb_str place; /**< "`time.sleep` train.py:16", escaped; empty: no single place */
};

void prb_late_deinit(struct prb_late *late);

/**
 * From the paces of @p round, as prb_pace_judge() has @p found. Looks at the rank some more times
 * if it runs on this machine.
 */
struct prb_error *prb_late_find(const struct prb_round *round, const struct prb_slowness *found,
				struct prb_late *ret) PRB_MUST_CHECK;

/** Appends "rank 1 is 150 ms late at each step, in `time.sleep` train.py:16". */
void prb_late_text(const struct prb_late *late, struct prb_str *s);

#endif
