/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Two recordings as one, so that they can be compared: equal functions are one function.
 *
 * Functions are equal if they have the same name and file, wherever in the file they are; else if
 * the ends of their paths are the same, so that a program may have moved to another folder. Lines
 * are compared by their distance from the line where the function begins. Processes are equal if
 * their command lines are.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_PROFILE_RECORDING_JOIN_H
#define PRB_PROFILE_RECORDING_JOIN_H

#include "profile/recording/recording.h"

/**
 * A recording that is @p after with the threads and runs of @p before in front of its own; its
 * `before` has the facts of that one, and `before_threads` how many threads are of it. The
 * caller's; borrows nothing.
 */
struct prb_error *prb_recording_join(const struct prb_recording *before,
				     const struct prb_recording *after,
				     struct prb_recording **ret) PRB_MUST_CHECK;

#endif
