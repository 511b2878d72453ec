/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A part of the time of a recording.
 *
 * The weight of a run is spread evenly over its time: a run that is half inside weighs half.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_PROFILE_RECORDING_RANGE_H
#define PRB_PROFILE_RECORDING_RANGE_H

#include "profile/recording/recording.h"

/** The part of @p run from @p from to @p to; false if it is empty. */
bool prb_run_inside(const struct prb_run *run, int64_t from, int64_t to, struct prb_run *ret);

/** The moment, from its start, up to which it has samples of @p covered nanoseconds: of --when, the
 * time outside of windows does not count. At most prb_recording_covered(). */
int64_t prb_recording_moment(const struct prb_recording *recording, int64_t covered);

/**
 * Keeps what is from @p from to @p to, in nanoseconds from the start, and counts times from there
 * on. The runs have to be in order. The cost stays that of the whole recording.
 */
void prb_recording_clip(struct prb_recording *recording, int64_t from, int64_t to);

#endif
