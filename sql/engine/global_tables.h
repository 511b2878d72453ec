/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Tables "global.SCHEMA.TABLE": the rows of a table in all ranks of a job. A callback brings
 * the rows; columns say where each row is from.
 *
 * SQLite has no names of three parts, so that a statement has to say global."SCHEMA.TABLE".
 *
 * Threading and ownership: as the session.
 */
#ifndef PRB_SQL_ENGINE_GLOBAL_TABLES_H
#define PRB_SQL_ENGINE_GLOBAL_TABLES_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "sql/spec/table.h"

struct prb_session;

/** Columns after those of the table itself. */
enum {
	PRB_PLACE_HOST,
	PRB_PLACE_ADDRESS,
	PRB_PLACE_RANK,
	PRB_PLACE_LOCAL_RANK,
	PRB_PLACE_NODE_RANK,
	PRB_PLACE_ROLE,
	PRB_PLACE_PID,
	PRB_PLACE_COUNT
};

/** The request to the ranks. */
struct prb_global_ask {
	const struct prb_table *own; /**< the table in one process */
	unsigned own_count;	     /**< its columns: place N of a row is column own_count + N */
	const char *sql;   /**< the statement for the ranks; NULL: the columns of the scan */
	const char *where; /**< a condition that the ranks can test, or NULL */
	int64_t limit;	   /**< rows needed of each rank; -1: all */
};

/** Appends rows to a scan as those of specs do (table.h). */
typedef struct prb_error *prb_global_reader(void *context, const struct prb_global_ask *ask,
					    struct prb_scan *scan);

/** Sets the reader of the session's global tables. */
void prb_session_on_global(struct prb_session *session, prb_global_reader *reader, void *context);

/**
 * Appends @p sql to @p ret with its names of three parts rewritten for SQLite, and adds those
 * tables to the session. Conditions, LIMIT and aggregates are left to the ranks if that is
 * certainly correct (sql/dialect/partial.h). *count: number of different tables.
 * PRB_ERROR_NOT_FOUND for a table that no process has; other errors for an invalid statement.
 */
struct prb_error *prb_global_rewrite(struct prb_session *session, const char *sql,
				     struct prb_str *ret, size_t *count) PRB_MUST_CHECK;

#endif
