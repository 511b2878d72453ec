/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The processes of a tree as a job, for what shows and saves jobs: each is a rank, whose
 * number is its pid.
 *
 * Threading: one thread at a time. Borrows what was read, but for the C frames.
 */
#ifndef PRB_CLI_COMMANDS_RUN_ROUND_H
#define PRB_CLI_COMMANDS_RUN_ROUND_H

#include "base/error.h"
#include "cli/commands/run/standstill.h"
#include "cluster/looks/seen.h"

/** Starts as {}. */
struct prb_still_round {
	struct prb_job job;
	struct prb_round round;
	PRB_VEC(struct prb_dump *) natives;
};

/** Makes it of the Python processes; @p native: those in C code are read again, with it. */
struct prb_error *prb_still_round_make(const struct prb_standstill *s, bool native,
				       struct prb_still_round *ret) PRB_MUST_CHECK;
void prb_still_round_deinit(struct prb_still_round *round);
#define prb_auto_still_round __attribute__((cleanup(prb_still_round_deinit)))

#endif
