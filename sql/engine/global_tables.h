/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Tables "global.SCHEMA.TABLE": the rows that a table has in all ranks of a job. Somebody
 * else brings them; here they are tables, with columns that say where each row is from.
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

/** Columns behind those of the table itself. */
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

/** What the ranks are asked for. */
struct prb_global_ask {
	const struct prb_table *own; /**< the table as one process has it */
	unsigned own_count;	     /**< its columns: place N of a row is column own_count + N */
	const char *sql;   /**< the statement that gives them; NULL: the columns of the scan */
	const char *where; /**< a condition that the ranks can test, or NULL */
	int64_t limit;	   /**< rows of each rank that are enough; -1: all are needed */
};

/** Appends rows to a scan as those of specs do (table.h). */
typedef struct prb_error *prb_global_reader(void *context, const struct prb_global_ask *ask,
					    struct prb_scan *scan);

/** Who brings the rows of global tables of the session. */
void prb_session_on_global(struct prb_session *session, prb_global_reader *reader, void *context);

/**
 * Appends @p sql to @p ret with each name of three parts as SQLite needs it, and makes those tables
 * known to the session. Conditions, LIMIT and aggregates are left to the ranks where that is
 * plainly right (sql/dialect/partial.h). *count: how many different ones there are.
 * PRB_ERROR_NOT_FOUND for one that no process has; other errors for a statement that makes no
 * sense.
 */
struct prb_error *prb_global_rewrite(struct prb_session *session, const char *sql,
				     struct prb_str *ret, size_t *count) PRB_MUST_CHECK;

#endif
