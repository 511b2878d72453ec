/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Ring recordings, which keep the last minutes (`perf --ring`): in the background, and found
 * by their target.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_BACKGROUND_H
#define PRB_CLI_COMMANDS_PERF_RECORD_BACKGROUND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "command/command.h"
#include "cli/commands/perf/show/performance.h"
#include "rings/known.h"

/** Notes a recording as soon as it has begun, so that it can be found by its target. */
struct prb_performance_note {
	pid_t pid;
	const char *output;
	struct prb_known known;
	int report; /**< descriptor for the report; -1: this is no background process */
	int folder; /**< locked while no other recording may begin; -1: not locked */
	bool begun;
};
#define PRB_PERFORMANCE_NO_NOTE                                        \
	{                                                              \
		.known = PRB_KNOWN_NOTHING, .report = -1, .folder = -1 \
	}

/**
 * For struct prb_profile_options; @p context is a note. Without the note only `--last PID` fails.
 */
void prb_performance_note_begun(void *context);

/**
 * Starts a recorder that outlives us, with a ring of ten minutes unless a length is given. Prints
 * how to view and stop it.
 */
struct prb_error *prb_performance_background(
	const struct prb_cli *cli, const struct prb_performance_settings *settings) PRB_MUST_CHECK;

/** Ends the background recordings of the target, and prints their files. */
struct prb_error *prb_performance_stop(const struct prb_cli *cli, bool as_json) PRB_MUST_CHECK;

/**
 * Checks that a recording that was noted is a file of ours: its folder may be shared, and the path
 * may name another file by now.
 */
struct prb_error *prb_performance_check_kept(const char *path) PRB_MUST_CHECK;

/**
 * Waits until a recorder, which writes once a second, has written all up to @p end (nanoseconds
 * since the epoch), has ended, or has not for four seconds. *ret_reached: it has written them.
 */
struct prb_error *prb_performance_wait_written(const char *path, int64_t end,
					       bool *ret_reached) PRB_MUST_CHECK;

/**
 * Path of the ring recording of the target, which may have ended; caller frees. NULL if the target
 * is a file, PRB_ERROR_NOT_FOUND if it has no recording. *ret_running: it is being written.
 */
struct prb_error *prb_performance_find_kept(const struct prb_cli *cli, char **ret,
					    bool *ret_running) PRB_MUST_CHECK;

#endif
