/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Recordings that keep the last minutes (`perf --ring`): in the background, and found by the
 * process that they are of.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_BACKGROUND_H
#define PRB_CLI_COMMANDS_PERF_RECORD_BACKGROUND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "command/command.h"
#include "cli/commands/perf/show/performance.h"
#include "rings/known.h"

/** Has a recording noted as soon as it has begun, so that it is found by its process. */
struct prb_performance_note {
	pid_t pid;
	const char *output;
	struct prb_known known;
	int report; /**< where it is reported; -1: this is no process in the background */
	int folder; /**< locked while others may not begin; -1: nothing is */
	bool begun;
};
#define PRB_PERFORMANCE_NO_NOTE                                        \
	{                                                              \
		.known = PRB_KNOWN_NOTHING, .report = -1, .folder = -1 \
	}

/** For struct prb_profile_options; @p context is a note. Without it all works but `--last PID`. */
void prb_performance_note_begun(void *context);

/** Starts a recorder that stays when we end, with a ring of ten minutes if nothing says how long,
 * and prints how to look at it and how to stop it. */
struct prb_error *prb_performance_background(
	const struct prb_cli *cli, const struct prb_performance_settings *settings) PRB_MUST_CHECK;

/** Ends those of the target, and prints where their recordings are. */
struct prb_error *prb_performance_stop(const struct prb_cli *cli, bool as_json) PRB_MUST_CHECK;

/**
 * The recording that is kept of the target, which may have ended; the caller's. NULL if the target
 * is a file, PRB_ERROR_NOT_FOUND if there is none of it. *ret_running: it is being written.
 */
struct prb_error *prb_performance_find_kept(const struct prb_cli *cli, char **ret,
					    bool *ret_running) PRB_MUST_CHECK;

#endif
