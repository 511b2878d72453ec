/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How long threads were stopped: counts by length, in the same little memory however many.
 *
 * Lengths are told apart to within three parts in a hundred.
 *
 * Threading: one thread at a time. Internal to profile/sampler/.
 */
#ifndef PRB_PROFILE_SAMPLER_PAUSES_H
#define PRB_PROFILE_SAMPLER_PAUSES_H

#include "profile/recording/recording.h"

enum {
	PRB_PAUSE_STEPS = 32,	  /**< of one length to twice as long */
	PRB_PAUSE_DOUBLINGS = 32, /**< from a 16th of a microsecond on */
};

struct prb_pauses {
	uint64_t counts[PRB_PAUSE_STEPS * PRB_PAUSE_DOUBLINGS];
	uint64_t count;
	double max, total; /**< µs */
};

void prb_pauses_add(struct prb_pauses *pauses, double us);
/** Sets the members of @p cost about stops. */
void prb_pauses_sum_up(const struct prb_pauses *pauses, struct prb_profile_cost *cost);

#endif
