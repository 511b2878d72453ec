/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The numbers from which on rules speak, all in one place. The environment variable
 * PROBING_LIMITS changes them: "still=60,swapped=1000".
 *
 * What makes a proof is no such number, and stays with its rule.
 *
 * Threading: any thread.
 */
#ifndef PRB_JUDGE_LIMITS_H
#define PRB_JUDGE_LIMITS_H

#include "base/error.h"

enum prb_limit {
	PRB_LIMIT_WAIT,
	PRB_LIMIT_LONG,
	PRB_LIMIT_WAITERS,
	PRB_LIMIT_GIL_WAITERS,
	PRB_LIMIT_PROCESSES,
	PRB_LIMIT_STILL,
	PRB_LIMIT_MEMORY,
	PRB_LIMIT_SWAPPED,
	PRB_LIMIT_ROOM,
	PRB_LIMIT_THROTTLED,
	PRB_LIMIT_ZOMBIES,
	PRB_LIMIT_NAN,
	PRB_LIMIT_LEAK,
	PRB_LIMIT_LEAK_FOR,
	PRB_LIMIT_READY,
	PRB_LIMIT_JOB,
	PRB_LIMIT_PEER,
	PRB_LIMIT_ANSWER,
	PRB_LIMIT_GIL_HELD,
	PRB_LIMIT_GIL_FOR,
	PRB_LIMIT_REQUEST,
	PRB_LIMIT_TOKEN,
	PRB_LIMIT_LOOP,
	PRB_LIMIT_TRANSFER,
	PRB_LIMIT_LOADING,
	PRB_LIMIT_GPU_BUSY,
	PRB_LIMIT_GPU_POWER,
	PRB_LIMIT_GPU_MEMORY,
	PRB_LIMIT_STEP_PART,
	PRB_LIMITS,
};

struct prb_limit_key {
	const char *name;
	double initial, most; /**< the least is 0 */
	const char *unit;     /**< NULL: a count */
	const char *doc;
};
extern const struct prb_limit_key prb_limit_keys[PRB_LIMITS];

/** The present value of one. */
double prb_limit(enum prb_limit limit);

/** PRB_ERROR_USAGE if the variable names another, or a value that one cannot have. */
struct prb_error *prb_limits_check(void) PRB_MUST_CHECK;

#endif
