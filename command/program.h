/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Starts a program as a child that ends with us: however this process ends, the kernel kills
 * the child then. The child has default signals, a process group of its own, so that a terminal's
 * Ctrl-C is not for it unless it has that terminal, and only the descriptors that it is given.
 *
 * Threading: the child dies with the thread that starts it, which so has to live as long.
 */
#ifndef PRB_COMMAND_PROGRAM_H
#define PRB_COMMAND_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct prb_program {
	char *const *words; /**< with a NULL at the end; without `itself`, $PATH has the first */
	bool itself;	    /**< the program is this one */
	int in, out, err;   /**< its descriptors 0 to 2; `in` -1: nothing to read */
	bool terminal;	    /**< `in` is a terminal without a session: it becomes the program's */
	/** Runs in the child before it becomes the program, to set its environment; or NULL. */
	void (*prepare)(const void *context);
	const void *context;
};

/**
 * Starts it; the caller reaps *ret. A program that cannot be run says so on its stderr and
 * ends with 127.
 */
struct prb_error *prb_program_start(const struct prb_program *program, pid_t *ret) PRB_MUST_CHECK;

/**
 * A descriptor that holds all of @p text for a program to read, with no writer needed; the
 * caller's.
 */
struct prb_error *prb_program_text(const char *text, size_t length, int *ret) PRB_MUST_CHECK;

#endif
