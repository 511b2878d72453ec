/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The processes of one recording: all that match a name, and their children.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_PROCESSES_H
#define PRB_CLI_COMMANDS_PERF_RECORD_PROCESSES_H

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"
#include "command/command.h"
#include "cli/commands/perf/show/performance.h"

struct prb_performance_targets {
	PRB_VEC(struct prb_target *) list;
};

/**
 * Opens the target of the command line, or all processes that match it. Deinit the result also
 * after an error.
 */
struct prb_error *prb_performance_open(const struct prb_cli *cli,
				       const struct prb_performance_settings *settings,
				       struct prb_performance_targets *ret) PRB_MUST_CHECK;
void prb_performance_targets_deinit(struct prb_performance_targets *targets);

/** The command line of the process, to be stored in the recording; caller frees. */
struct prb_error *prb_performance_command_line(const struct prb_target *target,
					       char **ret) PRB_MUST_CHECK;

/** All descendants of a process, as for prb_profile_options. */
struct prb_error *prb_performance_children(void *context, pid_t pid, pid_t **ret,
					   size_t *ret_count) PRB_MUST_CHECK;

#endif
