/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The steps that a rank makes between two moments, as its optimizer of torch counts them:
 * read from memory, the rank runs on. SGD and others do not count.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_LOOKS_STEP_COUNT_H
#define PRB_CLUSTER_LOOKS_STEP_COUNT_H

#include <stdint.h>

#include "base/error.h"
#include "target/target.h"

/** Starts as {}. */
struct prb_step_count {
	uint64_t optimizer; /**< address; 0: none that counts was found */
	uint64_t first;
};

/** @p target may be NULL. Nothing that cannot be read is an error but PRB_ERROR_NOMEM. */
struct prb_error *prb_step_count_begin(struct prb_target *target,
				       struct prb_step_count *count) PRB_MUST_CHECK;

/** -1: unknown. */
struct prb_error *prb_step_count_end(struct prb_target *target, const struct prb_step_count *count,
				     long *ret) PRB_MUST_CHECK;

#endif
