/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the terminal can do.
 */
#ifndef PRB_CLI_TERM_H
#define PRB_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** True if @p stream is a terminal that shows colours and the user did not say NO_COLOR. */
bool prb_term_colour(FILE *stream);

/** Columns and rows of the terminal that @p stream is; false, and nothing set, if it is none. */
bool prb_term_size(FILE *stream, size_t *columns, size_t *rows);

#endif
