/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Tables of Python expressions: python.`EXPRESSION` is evaluated in the target when a
 * statement that names it is prepared, and again when that statement runs once more.
 *
 * Only in a session that may run code (changes.h). Threading and ownership: as the
 * session.
 */
#ifndef PRB_SQL_ENGINE_EXPRESSION_TABLES_H
#define PRB_SQL_ENGINE_EXPRESSION_TABLES_H

#include <stdbool.h>

#include "sql/spec/table.h"

struct prb_session;

struct prb_expression_tables;

/**
 * Makes the table that @p sql means if SQLite does not know @p word, "python.EXPRESSION"; *ret: it
 * did. An expression that may not be evaluated, or fails, is an error.
 */
struct prb_error *prb_expression_tables_add(struct prb_session *session, const char *sql,
					    const char *word, bool *ret) PRB_MUST_CHECK;

/** Forgets those of statements that have ended. */
void prb_expression_tables_drop(struct prb_session *session);

/** By its names, or NULL. */
const struct prb_table *prb_expression_tables_find(const struct prb_expression_tables *tables,
						   const char *schema, const char *name);

#endif
