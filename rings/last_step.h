/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The last training steps that a process has recorded (training_logs, torch_step_timing),
 * without reading much earlier ones.
 *
 * Threading: as the target's.
 */
#ifndef PRB_RINGS_LAST_STEP_H
#define PRB_RINGS_LAST_STEP_H

#include "base/error.h"
#include "target/target.h"

struct prb_last_step {
	int64_t number; /**< of the last one; -1: none was recorded */
	int64_t ended;	/**< when that was, in nanoseconds since the epoch */
	bool rings;	/**< it has any */
	double longest; /**< ms, of the last ones that ended after @p since; 0: none did */
};

/** Rings that cannot be read are left out. @p since: nanoseconds since the epoch. */
struct prb_error *prb_last_step(struct prb_target *target, int64_t since,
				struct prb_last_step *ret) PRB_MUST_CHECK;

#endif
