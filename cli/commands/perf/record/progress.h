/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A line on the terminal, while a recording is made: how long, how many samples, what it
 * costs.
 *
 * A thread of its own prints, so that a slow terminal delays no sample. There is one at most.
 *
 * Threading: all functions are for the thread that records. Errors: without a terminal on stderr,
 * or a thread, there is no line.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_PROGRESS_H
#define PRB_CLI_COMMANDS_PERF_RECORD_PROGRESS_H

#include "profile/recording/recording.h"

void prb_progress_begin(void);
/** For prb_profile_options: what there is now. */
void prb_progress_put(const struct prb_recording *recording);
/** From now on it says this, which is to stay there. */
void prb_progress_say(const char *text);
/** Takes the line away. */
void prb_progress_end(void);

#endif
