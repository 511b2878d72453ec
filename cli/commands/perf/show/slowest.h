/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `perf --slowest`: the samples within the slowest calls of a function, beside those within
 * all others.
 */
#ifndef PRB_CLI_COMMANDS_PERF_SHOW_SLOWEST_H
#define PRB_CLI_COMMANDS_PERF_SHOW_SLOWEST_H

#include "base/error.h"
#include "base/str.h"
#include "profile/recording/recording.h"
#include "target/target.h"

/** Checks "1% of FUNCTION". PRB_ERROR_USAGE. */
struct prb_error *prb_slowest_check(const char *text) PRB_MUST_CHECK;

/**
 * Keeps in @p others and @p slowest, which are two copies of one recording, what is within the
 * calls that @p target has recorded, and appends what they are to @p ret_told.
 */
struct prb_error *prb_slowest_split(struct prb_target *target, const char *text,
				    struct prb_recording *others, struct prb_recording *slowest,
				    struct prb_str *ret_told) PRB_MUST_CHECK;

#endif
