/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Prints where a thread is after a step. */
#ifndef PRB_CLI_COMMANDS_PAUSE_STEP_PLACE_H
#define PRB_CLI_COMMANDS_PAUSE_STEP_PLACE_H

#include "control/step.h"

/** Reads the place from outside. */
struct prb_error *prb_step_tell(struct prb_target *t, pid_t tid, bool as_json) PRB_MUST_CHECK;

#endif
