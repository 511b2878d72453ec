/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Whether a program has gone on that always comes back to the same place: the integers among
 * the local variables of its functions, such as the number of a step. One thread at a time.
 */
#ifndef PRB_CLUSTER_LOOKS_PROGRESS_H
#define PRB_CLUSTER_LOOKS_PROGRESS_H

#include "base/error.h"
#include "cluster/looks/seen.h"

/**
 * Sets `progress` from the functions that wait for the operation that @p seen is in, or from all.
 * Variables of modules do not count, as any thread can set them.
 */
struct prb_error *prb_progress_read(struct prb_watch *watch, struct prb_seen *seen) PRB_MUST_CHECK;

/** The same, of a rank whose dump has the variables already. */
uint64_t prb_progress_hash(const struct prb_seen *seen);

/** One step of that hash. */
uint64_t prb_progress_mix(uint64_t hash, uint64_t value);

#endif
