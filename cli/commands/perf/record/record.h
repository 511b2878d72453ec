/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Records running processes, or a program that it starts.
 *
 * Threading: the main thread.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_RECORD_H
#define PRB_CLI_COMMANDS_PERF_RECORD_RECORD_H

#include "base/error.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/show/performance.h"

struct prb_performance_note;

/**
 * Records to the .profile that the settings name. @p note: of the recording, or NULL. *ret has no
 * samples.
 */
struct prb_error *prb_performance_keep(const struct prb_performance_targets *targets,
				       const struct prb_performance_settings *settings,
				       struct prb_performance_note *note,
				       struct prb_recording **ret) PRB_MUST_CHECK;

/**
 * Records until the duration is over, or Ctrl-C; to a .profile if the settings name one. @p format:
 * of the output, or NULL.
 */
struct prb_error *prb_performance_record(const struct prb_performance_targets *targets,
					 const struct prb_performance_settings *settings,
					 const struct prb_profile_format *format,
					 struct prb_recording **ret) PRB_MUST_CHECK;

/**
 * As above, for the program of the command line. Messages go to stderr, since stdout belongs to the
 * program. Call prb_program_wait() afterwards.
 */
struct prb_error *prb_performance_start(const struct prb_cli *cli,
					const struct prb_performance_settings *settings,
					const struct prb_profile_format *format,
					struct prb_recording **ret) PRB_MUST_CHECK;

#endif
