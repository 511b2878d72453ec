/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What torch's flight recorder has, asked of the agent, which needs no GIL for it.
 *
 * Threading: one thread at a time per target. Errors: those of control/eval.h;
 * PRB_ERROR_UNSUPPORTED with the reason if there is no recorder.
 */
#ifndef PRB_CONTROL_FLIGHT_H
#define PRB_CONTROL_FLIGHT_H

#include "base/error.h"
#include "base/str.h"
#include "target/target.h"

/** Seconds that a user waits for the answer. */
#define PRB_FLIGHT_SECONDS 5.0

/**
 * Appends JSON: an array of what the recorders say. It is as little to be trusted as the process.
 * PRB_ERROR_NOT_FOUND if there is no agent: none is loaded. PRB_ERROR_TIMEOUT after @p seconds.
 */
struct prb_error *prb_flight_dump(struct prb_target *target, double seconds,
				  struct prb_str *ret) PRB_MUST_CHECK;

#endif
