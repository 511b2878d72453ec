/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The last training step that a process has recorded (training_logs, torch_step_timing),
 * without reading the steps before.
 *
 * Threading: that of the target.
 */
#ifndef PRB_RECORDS_LAST_STEP_H
#define PRB_RECORDS_LAST_STEP_H

#include "base/error.h"
#include "target/target.h"

/** *ret is -1 if it has recorded none. Rings that cannot be read are left out. */
struct prb_error *prb_last_step(struct prb_target *target, int64_t *ret) PRB_MUST_CHECK;

#endif
