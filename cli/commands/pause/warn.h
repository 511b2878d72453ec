/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Warnings before a pause: supervisors that could kill the process. */
#ifndef PRB_CLI_COMMANDS_PAUSE_WARN_H
#define PRB_CLI_COMMANDS_PAUSE_WARN_H

#include <stdbool.h>

#include "control/stop_threads.h"
#include "target/target.h"

/**
 * Warns of supervisors that may take @p t for dead when it is paused for up to @p seconds, going by
 * its environment, and of interpreters that are not paused unless it is stopped @p hard. Finds the
 * GIL of the main interpreter, if it can be found.
 */
void prb_pause_look(struct prb_target *t, double seconds, bool hard, struct prb_gil_locks *ret_gil);

#endif
