/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The training steps that a process records by itself, for conditions of `perf --when`.
 *
 * Threading: any one thread; opens a target of its own.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_STEPS_H
#define PRB_CLI_COMMANDS_PERF_RECORD_STEPS_H

#include "profile/store/write/store.h"

/** As prb_store_steps_fn. */
bool prb_performance_steps(pid_t pid, int64_t since, struct prb_store_step *ret);

#endif
