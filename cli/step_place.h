/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The thread that makes a step, read from outside: which it is, and where it stands then.
 */
#ifndef PRB_CLI_STEP_PLACE_H
#define PRB_CLI_STEP_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dwarf/base/error.h"
#include "dwarf/target.h"

/** Python's name of the thread *@p tid; if that is 0 it becomes the main thread. */
struct prb_error *prb_step_thread(struct prb_target *t, pid_t *tid, uint64_t *ret) PRB_MUST_CHECK;

/** Prints where the thread stands. */
struct prb_error *prb_step_tell(struct prb_target *t, pid_t tid, bool as_json) PRB_MUST_CHECK;

#endif
