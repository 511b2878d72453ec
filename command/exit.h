/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Converts an error to a message on stderr and an exit code.
 */
#ifndef PRB_COMMAND_EXIT_H
#define PRB_COMMAND_EXIT_H

#include "base/error.h"

/** The exit codes, which scripts rely on. */
enum prb_exit {
	PRB_EXIT_OK = 0,
	PRB_EXIT_FAILED = 1,
	PRB_EXIT_USAGE = 2,
	PRB_EXIT_UNSUPPORTED = 3,
	PRB_EXIT_PERMISSION = 4,
	PRB_EXIT_TIMEOUT = 5,
	PRB_EXIT_NO_PROCESS = 6,
};

/** The name of the program, which begins each message. */
extern const char *prb_exit_program;

/** Makes us end with the wait status of a program that we ran. */
void prb_exit_pass(int status);

/** Ends as the program did, by its signal or with its code; returns if there was none. */
void prb_exit_as_passed(void);

enum prb_exit prb_exit_code(const struct prb_error *err);

/**
 * Prints @p err to stderr, ends it, and gives the code to exit with; NULL gives 0. Without a
 * message nothing is printed: a message was printed already.
 */
enum prb_exit prb_exit_report(struct prb_error *err);

/** Called before a warning is printed: erases what stands in its place. NULL: nothing does. */
extern void (*prb_warn_first)(void);

/** Prints "PROGRAM: warning: TEXT" to stderr, control characters escaped. */
void prb_warn(const char *text);

/** The one word that stands for each exit code in the man page; NULL past the last. */
const char *prb_exit_meaning(int code);

#endif
