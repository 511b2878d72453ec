/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs a program to be recorded, and exits with its status.
 *
 * The program is a child with our own rights, environment, terminal and signals; nothing is loaded
 * into it, and if we are killed it runs on. Signals sent to us alone are passed on to it; it gets
 * the terminal's signals itself.
 *
 * Threading: the main thread, once in a process.
 */
#ifndef PRB_CLI_COMMANDS_PERF_RECORD_PROGRAM_H
#define PRB_CLI_COMMANDS_PERF_RECORD_PROGRAM_H

#include "base/error.h"
#include "profile/recording/recording.h"
#include "profile/sampler/sampler.h"

typedef struct prb_error *prb_program_recorder(void *context,
					       const struct prb_profile_program *program,
					       struct prb_recording **ret);

/**
 * Starts the program of @p words and records it. If the recording fails, reports that, waits until
 * the program has ended, and returns an error without a message. If there is no such program,
 * reports that and sets the exit status 127; 126 if it cannot be run.
 */
struct prb_error *prb_program_record(char *const *words, prb_program_recorder *record,
				     void *context, struct prb_recording **ret) PRB_MUST_CHECK;

/**
 * Waits until the program has ended. If @p err is NULL, sets our exit status to the program's;
 * returns @p err.
 */
struct prb_error *prb_program_wait(struct prb_error *err) PRB_MUST_CHECK;

#endif
