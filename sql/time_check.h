/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Times compared with texts, wherever SQLite's planner does not tell of it. Private to sql.
 *
 * SQLite takes any number for less than any text, so that such a comparison gives nothing, or all.
 * Constraints that reach a table are looked at when it is planned; those inside of expressions (OR,
 * NOT, CASE, lists) and of what is made of the rows (aggregates, subqueries, UNION) only show in
 * the program that SQLite makes of the statement. It is read here.
 */
#ifndef PRB_SQL_TIME_CHECK_H
#define PRB_SQL_TIME_CHECK_H

#include "sql/session_private.h"
#include "sql/table.h"

/** What is said of @p column compared with @p text. */
struct prb_error *prb_time_complaint(const struct prb_column *column, const char *text);

/** PRB_ERROR_USAGE if the statement @p sql, which SQLite takes, compares a time with a text. */
struct prb_error *prb_check_times(struct prb_session *session, const char *sql) PRB_MUST_CHECK;

#endif
