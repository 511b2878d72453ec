/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by vtab.c (reading) and vtab_plan.c (planning). Internal to sql/engine/. */
#ifndef PRB_SQL_ENGINE_VTAB_PRIVATE_H
#define PRB_SQL_ENGINE_VTAB_PRIVATE_H

#include "sql/engine/grouped.h"
#include "sql/engine/page.h"
#include "sql/engine/session_private.h"

enum { PRB_MAX_KEYS = 8 };

/** A constraint that reaches the scan. */
struct prb_key {
	unsigned column;
	const sqlite3_value *value; /**< NULL: constrained, but not by an equality */
	char bound; /**< '<' or '>': the column is at most or at least `value`; 0: equal */
};

struct prb_vtab {
	sqlite3_vtab base;
	struct prb_session *session;
	const struct prb_table *spec;
	unsigned column_count; /**< of the spec */
	unsigned lead;	       /**< columns before the spec's own */

	/* The last scan, if it fits one page: the inner loop of a join repeats it. */
	struct prb_page *kept;
	size_t kept_target;
	uint64_t kept_generation;
	char *kept_keys;
};

static inline struct prb_vtab *prb_vtab_of(sqlite3_vtab *vtab)
{
	return (struct prb_vtab *)vtab;
}

/** The spec's column for column @p index of the declaration; NULL for a leading one. */
const struct prb_column *prb_vtab_column(const struct prb_vtab *table, int index);

/** Passes an error to SQLite, and keeps it whole in the session. */
int prb_vtab_fail(struct prb_vtab *table, struct prb_error *err);

/**
 * Chooses the constraints that reach the scan. idxStr becomes the mask of used columns in
 * hexadecimal, and for each key ",COLUMN" (its value is the next argument of the filter),
 * ",COLUMN<", ",COLUMN>" (the same for a bound) or ",COLUMN?" (constrained, but not to one value);
 * then for each column of GROUP BY ";COLUMN+" (ascending) or ";COLUMN-". Adds to the statement's
 * needs.
 */
int prb_vtab_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info);

#endif
