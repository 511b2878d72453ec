/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What `perf` can be asked for, and which of its options each of these takes.
 *
 * Threading: none of its own. Errors: PRB_ERROR_USAGE.
 */
#ifndef PRB_CLI_COMMANDS_PERF_MODES_H
#define PRB_CLI_COMMANDS_PERF_MODES_H

#include "cli/commands/perf/show/performance.h"

enum prb_performance_mode {
	PRB_PERFORMANCE_STOP,
	PRB_PERFORMANCE_EXACT,	    /**< --torch --exact: the agent times modules */
	PRB_PERFORMANCE_TORCH,	    /**< samples by module */
	PRB_PERFORMANCE_BACKGROUND, /**< a recorder that stays */
	PRB_PERFORMANCE_LAST,	    /**< the end of a recording that is kept */
	PRB_PERFORMANCE_PROCESS,    /**< records one that runs; the usual mode */
	PRB_PERFORMANCE_PROGRAM,    /**< records one that it starts */
	PRB_PERFORMANCE_RECORDING,  /**< shows a .profile */
	PRB_PERFORMANCE_MODES
};

enum prb_performance_mode prb_performance_mode_of(const struct prb_cli *cli,
						  const struct prb_performance_settings *settings);

/** Refuses options that this mode does not take. */
struct prb_error *prb_performance_mode_check(enum prb_performance_mode mode,
					     const struct prb_performance_settings *settings)
	PRB_MUST_CHECK;

/** The same, of the mode, of what is written (@p format: NULL for a table or a .profile), and of
 * what options exclude each other; and checks values of options. */
struct prb_error *prb_performance_check_all(enum prb_performance_mode mode,
					    const struct prb_performance_settings *settings,
					    const struct prb_profile_format *format) PRB_MUST_CHECK;

#endif
