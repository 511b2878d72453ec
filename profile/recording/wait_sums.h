/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How long threads of a recording waited, and for what.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_PROFILE_RECORDING_WAIT_SUMS_H
#define PRB_PROFILE_RECORDING_WAIT_SUMS_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "profile/recording/report.h"

struct prb_wait_sum {
	uint32_t wait;	 /**< in the recording */
	uint32_t thread; /**< the waiting thread; where all are one row, the first of them */
	size_t threads;	 /**< that waited: 1, or how many are one row */
	int64_t wall;
};

struct prb_wait_sums {
	PRB_VEC(struct prb_wait_sum) list; /**< the longest first */
	int64_t wall;			   /**< of all */
};

/**
 * Sums up the waits of the chosen threads: for the GIL if @p gil, of each thread by its own; else
 * for all that is not the GIL, by what it is. Unknown causes are wait 0.
 */
struct prb_error *prb_wait_sums_make(const struct prb_recording *recording,
				     const struct prb_profile_choice *choice, bool gil,
				     struct prb_wait_sums *ret) PRB_MUST_CHECK;
/** Appends "an RLock, held by 4250 worker-0", "the GIL", …; as people read it, escaped. */
void prb_wait_text(const struct prb_recording *recording, uint32_t wait, struct prb_str *s);

void prb_wait_sums_deinit(struct prb_wait_sums *sums);

#endif
