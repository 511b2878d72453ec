/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Writes results to stdout; a failed write is an error.
 */
#ifndef PRB_COMMAND_OUTPUT_H
#define PRB_COMMAND_OUTPUT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"

/** Results go to stderr from now on: stdout belongs to a program that we have started. */
void prb_output_aside(void);

/** Writes @p length bytes to stdout, where they may wait for more. */
struct prb_error *prb_output_bytes(const char *text, size_t length) PRB_MUST_CHECK;

/** Writes @p text to stdout, whole. */
struct prb_error *prb_output(const struct prb_str *text) PRB_MUST_CHECK;

/**
 * Writes @p text, lines for people unless @p for_programs: on a terminal, a line that is too wide
 * continues below. All tables and reports are printed by this, but those of SQL (sql/render/).
 */
struct prb_error *prb_output_lines(const struct prb_str *text, bool for_programs) PRB_MUST_CHECK;

/** Flushes stdout; the error says why what was printed did not arrive. */
struct prb_error *prb_output_flush(void) PRB_MUST_CHECK;

#endif
