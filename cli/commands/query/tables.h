/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Lists of SQL tables and columns as text. */
#ifndef PRB_CLI_COMMANDS_QUERY_TABLES_H
#define PRB_CLI_COMMANDS_QUERY_TABLES_H

#include "base/error.h"
#include "base/str.h"

/**
 * Appends a list of all tables, or the columns of the tables that @p pattern matches: a table, a
 * schema or a pattern of a shell. PRB_ERROR_USAGE if there are none, with the nearest names.
 */
struct prb_error *prb_tables_text(const char *pattern, struct prb_str *ret) PRB_MUST_CHECK;

#endif
