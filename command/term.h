/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Properties of the terminal.
 */
#ifndef PRB_COMMAND_TERM_H
#define PRB_COMMAND_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** True if @p stream is a terminal that shows colours and the user did not say NO_COLOR. */
bool prb_term_colour(FILE *stream);

/** True if @p stream is a terminal, here or at the end of a client. */
bool prb_term_is(FILE *stream);

/** Columns and rows of the terminal that @p stream is; false, and nothing set, if it is none. */
bool prb_term_size(FILE *stream, size_t *columns, size_t *rows);

/**
 * Environment variable of a command that runs for a remote client: its stdout ends at a terminal of
 * that size, though it is a pipe; and so may its stderr.
 */
#define PRB_TERM_REMOTE "PROBING_CLIENT_TERMINAL"
enum { PRB_TERM_REMOTE_SIZE = 64 };
void prb_term_remote_text(size_t columns, size_t rows, bool colour, bool both,
			  char ret[PRB_TERM_REMOTE_SIZE]);

#endif
