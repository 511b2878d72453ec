/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Pieces of the time of single threads, out of a recording.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_PROFILE_RECORDING_PIECES_H
#define PRB_PROFILE_RECORDING_PIECES_H

#include "base/error.h"
#include "profile/recording/recording.h"

/** What a thread did from `begin` to `end`, in nanoseconds from the start. */
struct prb_profile_piece {
	pid_t tid;
	int64_t begin, end;
};

/**
 * Keeps what threads did within the @p count pieces, which are sorted by the call; pieces of a
 * thread may overlap. The cost stays that of the whole recording.
 */
struct prb_error *prb_recording_keep_pieces(struct prb_recording *recording,
					    struct prb_profile_piece *pieces,
					    size_t count) PRB_MUST_CHECK;

#endif
