/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the line on the terminal says during a recording: its duration, samples and cost.
 *
 * Threading: the recording thread. Errors: none.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_PROGRESS_H
#define PRB_CLI_COMMANDS_PERF_RECORD_PROGRESS_H

#include "profile/recording/recording.h"

/** For prb_profile_options: shows the present numbers, between prb_waiting_begin() and its end. */
void prb_recording_progress(const struct prb_recording *recording);

#endif
