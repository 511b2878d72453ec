/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `trace --slower`: the stacks that the process's recorder sampled within its slow calls.
 *
 * Stacks come from a recorder that already runs; without one there are none.
 */
#ifndef PRB_CLI_COMMANDS_PERF_WITHIN_CALLS_H
#define PRB_CLI_COMMANDS_PERF_WITHIN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "target/target.h"

/**
 * Prints the stacks of the longest calls of @p name that ended after @p since (nanoseconds since
 * the epoch) and took @p slower seconds or more; or on stderr why there are none.
 */
struct prb_error *prb_stacks_within_calls(struct prb_target *target, const char *name,
					  int64_t since, double slower, bool json) PRB_MUST_CHECK;

#endif
