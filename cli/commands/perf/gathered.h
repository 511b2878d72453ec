/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Recordings of several machines as one, which has the processes of all.
 *
 * Threading: one thread at a time. Each part is somebody else's file: sums that could overflow are
 * PRB_ERROR_BAD_DATA.
 */
#ifndef PRB_CLI_COMMANDS_PERF_GATHERED_H
#define PRB_CLI_COMMANDS_PERF_GATHERED_H

#include "base/error.h"
#include "profile/recording/recording.h"

struct prb_gathered {
	struct prb_recording *all; /**< owned; created empty */
	int64_t weight;		   /**< of all its runs: what they may sum up to at most */
};

/**
 * Appends the processes of @p part, whose runs are in order. They are named with @p suffix, and
 * each is the outermost frame of its stacks. Runs begin @p shift ns later, which is not negative.
 */
struct prb_error *prb_gathered_add(struct prb_gathered *gathered, const struct prb_recording *part,
				   const char *suffix, int64_t shift) PRB_MUST_CHECK;

/** After the last one: runs are in the order of time, and lines of source that several have are
 * there once. */
void prb_gathered_settle(struct prb_gathered *gathered);

#endif
