/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs a program to be recorded, and ends as it does.
 *
 * The program is a child with our own rights, environment, terminal and signals; nothing is loaded
 * into it, and when we are killed it runs on. Signals that are sent to us alone are passed on to
 * it; those of the terminal come to it anyway.
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
 * Starts the program of @p words and has it recorded. When that fails, says so, waits until the
 * program has ended, and returns an error without a message. When there is no such program, that is
 * said, and we will exit with 127; 126 if it cannot be run.
 */
struct prb_error *prb_program_record(char *const *words, prb_program_recorder *record,
				     void *context, struct prb_recording **ret) PRB_MUST_CHECK;

/** Waits until the program has ended. Without @p err, which is returned, we will exit as it did. */
struct prb_error *prb_program_wait(struct prb_error *err) PRB_MUST_CHECK;

#endif
