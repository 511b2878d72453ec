/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The program that `probing run` starts: a child in the same process group, session and
 * terminal, with our own signals, descriptors and limits. Nothing is loaded into it.
 *
 * Signals that are sent to this process alone are passed on; those of the terminal reach the
 * program by themselves. Where the shell could resume us, we stop when the program is stopped by
 * its terminal. Descendants whose parents have ended become our children, so that they stay in the
 * tree. If we are killed, the program runs on.
 *
 * Threading: the main thread, once in a process.
 */
#ifndef PRB_CLI_COMMANDS_RUN_PROGRAM_H
#define PRB_CLI_COMMANDS_RUN_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum prb_started_event {
	PRB_STARTED_TIME,    /**< the time is over */
	PRB_STARTED_ENDED,   /**< the program has ended */
	PRB_STARTED_ASKED,   /**< somebody sent SIGTERM or SIGINT, which was not passed on yet */
	PRB_STARTED_RESUMED, /**< we were stopped, or the program was */
};

struct prb_started {
	pid_t pid;
	bool ended;
	int status; /**< of wait(), once it has ended */
	int asked;  /**< the signal that somebody sent */
};

/**
 * Starts the program. PRB_ERROR_NOT_FOUND with an empty message if it cannot be run: that was
 * reported, and the exit code is set to 127 or 126.
 */
struct prb_error *prb_started_begin(char *const *words, struct prb_started *ret) PRB_MUST_CHECK;

/** Waits for up to @p seconds until something happens. */
enum prb_started_event prb_started_wait(struct prb_started *program, double seconds);

/** Passes on the signal that somebody sent. */
void prb_started_pass(struct prb_started *program);

/**
 * Ends the program and all processes below us: SIGTERM to the program, then to the others, each
 * with @p grace seconds, then SIGKILL.
 */
struct prb_error *prb_started_end(struct prb_started *program, double grace) PRB_MUST_CHECK;

/** Sets our exit code: the program's, or 128 and the number of its signal. By SIGINT we end
 * likewise, so that a shell script ends, too. */
void prb_started_exit(const struct prb_started *program);

#endif
