/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `perf --rotate`: a series of recordings. */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_ROTATE_H
#define PRB_CLI_COMMANDS_PERF_RECORD_ROTATE_H

#include "base/error.h"
#include "command/command.h"
#include "cli/commands/perf/show/performance.h"

/** Records one file after the other, each of its own name, until Ctrl-C, or the process ends, or
 * their --duration is over; removes those of them that are more than are to be kept. */
struct prb_error *prb_performance_rotate(
	const struct prb_cli *cli, const struct prb_performance_settings *settings) PRB_MUST_CHECK;

#endif
