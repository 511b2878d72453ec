/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Splits a statement over one table of all ranks of a job ("global.SCHEMA.TABLE") into what
 * each rank does by itself and what is left to do with its rows: conditions, LIMIT, and aggregates
 * by groups (count, sum, total, min, max, avg, approx_count_distinct, approx_quantile).
 *
 * Only what is plainly right is split; other statements (joins, subqueries, DISTINCT, window
 * functions, other aggregates) are left as they are, and need all rows.
 *
 * Threading: any thread.
 */
#ifndef PRB_SQL_DIALECT_PARTIAL_H
#define PRB_SQL_DIALECT_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** A split statement; what it does not have is NULL. Owns its texts. */
struct prb_partial {
	char *schema, *table; /**< the table, as it is named in the statement */
	char *where;	      /**< a condition that each rank can test */
	int64_t limit;	      /**< rows of each rank that are enough; -1: all are needed */
	/** The statement of each rank: its columns are _rank, _pid, c0, c1, … ; NULL: there are no
	 * aggregates, or they cannot be split. */
	char *each;
	unsigned columns; /**< of `each`, without _rank and _pid */
	char *rest;	  /**< the statement over the rows of `each` */
};

/** The facts of the table. */
struct prb_partial_table {
	const char *name; /**< that `rest` uses for the rows of `each` */
	/** True if the table of one process has a column of that name. */
	bool (*has_column)(const void *context, const char *schema, const char *table,
			   const char *column, size_t length);
	const void *context;
};

/** Splits @p sql as far as possible. PRB_ERROR_NOMEM is the only error. */
struct prb_error *prb_partial_make(const char *sql, const struct prb_partial_table *table,
				   struct prb_partial *ret) PRB_MUST_CHECK;
void prb_partial_deinit(struct prb_partial *partial);
#define prb_auto_partial __attribute__((cleanup(prb_partial_deinit)))

#endif
