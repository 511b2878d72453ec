/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Command lines of processes as text, and finding processes by them.
 */
#ifndef PRB_TARGET_SPEC_COMMAND_LINE_H
#define PRB_TARGET_SPEC_COMMAND_LINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "target/proc/process.h"
#include "target/target.h"
#include "target/proc/pids.h"

/**
 * Appends the command line of @p process as a shell would take it, of long arguments the beginning
 * (prb_text_argument_start()); "[comm]" if it has none.
 */
void prb_command_line_text(struct prb_str *s, const struct prb_process *process);
/**
 * The same as the last cell of a table's line (prb_text_last_cell()), behind @p prefix. On a
 * terminal that it does not fit, folders are left out so that programs can be told apart: those of
 * the interpreter, then the first of the script's.
 */
void prb_command_line_cell(struct prb_str *s, size_t start, const char *prefix,
			   const struct prb_process *process, size_t columns);
/** As above, without secrets. */
void prb_command_line_cut(struct prb_str *s, const struct prb_process *process);

/**
 * Puts the process, its pid and command line, in front of an error that its kind is not supported:
 * it may be a launcher that was taken for a Python. Returns @p err, which may be NULL.
 */
struct prb_error *prb_command_line_name(const struct prb_target *target,
					struct prb_error *err) PRB_MUST_CHECK;

/**
 * Finds the one Python process whose command line (arguments divided by single spaces) matches
 * @p pattern: a regular expression, or text that it contains. PRB_ERROR_USAGE if several do, with
 * a list in the hint, or if the expression is wrong; PRB_ERROR_NO_PROCESS if none does.
 */
struct prb_error *prb_command_line_find(const char *pattern, bool regex, pid_t *ret) PRB_MUST_CHECK;

/** Appends all that match, in the order of their pids; PRB_ERROR_NO_PROCESS if none does. */
struct prb_error *prb_command_line_find_all(const char *pattern, bool regex,
					    struct prb_pids *ret) PRB_MUST_CHECK;

#endif
