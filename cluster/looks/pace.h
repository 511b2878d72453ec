/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which rank the others wait for, of a job that moves: many looks from outside, over some
 * seconds. Fast ranks wait in collectives for slow ones, so the rank that is seen there least often
 * is the slow one. No clocks of hosts are compared.
 *
 * Looks find shares of time, not single collectives: a rank that is late once is not seen.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_LOOKS_PACE_H
#define PRB_CLUSTER_LOOKS_PACE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "cluster/looks/seen.h"
#include "cluster/looks/pace_spots.h"

/**
 * Looks at the ranks of @p job for @p seconds, and notes the pace of each in @p round, which has
 * been made; with @p count, also the steps of one. PRB_ERROR_CANCELLED when interrupted.
 */
struct prb_error *prb_pace_take(const struct prb_job *job, double seconds, bool count,
				struct prb_round *round) PRB_MUST_CHECK;

/** The conclusion from the paces of all ranks. */
struct prb_slowness {
	const struct prb_seen *slow; /**< the slow rank, the round's; NULL: none stands out */
	double waits,
		others_wait; /**< shares of time in collectives: its own, the others' median */
	bool sure;	     /**< unlikely by chance */
	long looks;	     /**< at the slow rank, or the most at any */
};

struct prb_error *prb_pace_judge(const struct prb_round *round,
				 struct prb_slowness *ret) PRB_MUST_CHECK;

/** Appends the name of a spot: "Net.forward train.py". */
void prb_pace_spot_name(const struct prb_dump_frame *frame, struct prb_str *s);

/** Share of its looks in which the rank was at a spot of that name. */
double prb_pace_share(const struct prb_pace *pace, const char *name);

/** The mean of that share over all ranks but @p but. */
double prb_pace_others(const struct prb_round *round, const struct prb_seen *but, const char *name);

#endif
