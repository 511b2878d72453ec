/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The modes of `perf`, and the options that each mode takes.
 *
 * Threading: none of its own. Errors: PRB_ERROR_USAGE.
 */
#ifndef PRB_CLI_COMMANDS_PERF_MODES_H
#define PRB_CLI_COMMANDS_PERF_MODES_H

#include "cli/commands/perf/show/performance.h"

enum prb_performance_mode {
	PRB_PERFORMANCE_STOP,
	PRB_PERFORMANCE_OPS,	    /**< --torch --ops: torch's own profiler runs */
	PRB_PERFORMANCE_EXACT,	    /**< --torch --exact: the agent times modules */
	PRB_PERFORMANCE_TORCH,	    /**< samples by module */
	PRB_PERFORMANCE_BACKGROUND, /**< starts a recorder that stays */
	PRB_PERFORMANCE_LAST,	    /**< the end of a ring recording */
	PRB_PERFORMANCE_PROCESS,    /**< records a running process; the usual mode */
	PRB_PERFORMANCE_PROGRAM,    /**< records a program that it starts */
	PRB_PERFORMANCE_RECORDING,  /**< shows a .profile */
	PRB_PERFORMANCE_MODES
};

enum prb_performance_mode prb_performance_mode_of(const struct prb_cli *cli,
						  const struct prb_performance_settings *settings);

/** Refuses options that the mode does not take. */
struct prb_error *prb_performance_mode_check(enum prb_performance_mode mode,
					     const struct prb_performance_settings *settings)
	PRB_MUST_CHECK;

/**
 * As above, and checks the options against the output (@p format: NULL for a table or a .profile)
 * and against each other, and their values.
 */
struct prb_error *prb_performance_check_all(enum prb_performance_mode mode,
					    const struct prb_performance_settings *settings,
					    const struct prb_profile_format *format) PRB_MUST_CHECK;

#endif
