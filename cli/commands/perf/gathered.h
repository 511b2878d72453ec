/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Merges recordings of several machines into one with all processes.
 *
 * Threading: one thread at a time. The parts are untrusted files: PRB_ERROR_BAD_DATA if sums could
 * overflow.
 */
#ifndef PRB_CLI_COMMANDS_PERF_GATHERED_H
#define PRB_CLI_COMMANDS_PERF_GATHERED_H

#include "base/error.h"
#include "profile/recording/recording.h"

struct prb_gathered {
	struct prb_recording *all; /**< owned; created empty */
	int64_t weight;		   /**< upper bound of the sum of all its times */
};

/**
 * Appends the processes of @p part, whose runs are in order. Their names get @p suffix, and each
 * process is the outermost frame of its stacks. Runs begin @p shift ns later; @p shift is not
 * negative.
 */
struct prb_error *prb_gathered_add(struct prb_gathered *gathered, const struct prb_recording *part,
				   const char *suffix, int64_t shift) PRB_MUST_CHECK;

/** Call after the last part: sorts runs by time, and drops duplicate source lines. */
void prb_gathered_settle(struct prb_gathered *gathered);

#endif
