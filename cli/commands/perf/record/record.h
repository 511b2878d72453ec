/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Records processes that run, or a program that is started.
 *
 * Threading: the main thread.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_RECORD_H
#define PRB_CLI_COMMANDS_PERF_RECORD_RECORD_H

#include "base/error.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/show/performance.h"

struct prb_performance_note;

/** Records to the .profile that the settings name; @p note: NULL, or has it noted. *ret has no
 * samples. */
struct prb_error *prb_performance_keep(const struct prb_performance_targets *targets,
				       const struct prb_performance_settings *settings,
				       struct prb_performance_note *note,
				       struct prb_recording **ret) PRB_MUST_CHECK;

/** Records until it ends, or Ctrl-C; to the .profile that the settings name if they do. @p format
 * is what it will be written as, or NULL. */
struct prb_error *prb_performance_record(const struct prb_performance_targets *targets,
					 const struct prb_performance_settings *settings,
					 const struct prb_profile_format *format,
					 struct prb_recording **ret) PRB_MUST_CHECK;

/** The same of the program of the command line. What is printed goes to stderr: its stdout is its
 * own. prb_program_wait() follows. */
struct prb_error *prb_performance_start(const struct prb_cli *cli,
					const struct prb_performance_settings *settings,
					const struct prb_profile_format *format,
					struct prb_recording **ret) PRB_MUST_CHECK;

#endif
