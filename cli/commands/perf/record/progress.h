/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A line on the terminal during a recording: its duration, samples and cost.
 *
 * A thread of its own prints, so that a slow terminal delays no sample. At most one exists.
 *
 * Threading: call all functions on the recording thread. Errors: without a terminal on stderr, or a
 * thread, there is no line.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_PROGRESS_H
#define PRB_CLI_COMMANDS_PERF_RECORD_PROGRESS_H

#include "profile/recording/recording.h"

void prb_progress_begin(void);
/** For prb_profile_options: shows the present numbers. */
void prb_progress_put(const struct prb_recording *recording);
/** Shows @p text from now on; static. */
void prb_progress_say(const char *text);
/** Erases the line. */
void prb_progress_end(void);

#endif
