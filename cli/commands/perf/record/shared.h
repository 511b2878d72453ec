/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Samples of a recorder that runs already (`perf --background`, `--ring`), in place of a
 * second tracer: a running thread has one at a time, so two would take samples from each other.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_SHARED_H
#define PRB_CLI_COMMANDS_PERF_RECORD_SHARED_H

#include "base/error.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/show/performance.h"
#include "profile/recording/recording.h"

/**
 * Waits for the duration, or Ctrl-C, and gives what our user's recorder of that process wrote
 * meanwhile, in order, with @p source lines if wanted; says so on stderr. *ret stays NULL if there
 * is no recorder that samples what is wanted.
 */
struct prb_error *prb_performance_shared(const struct prb_performance_targets *targets,
					 const struct prb_performance_settings *s, bool source,
					 struct prb_recording **ret) PRB_MUST_CHECK;

#endif
