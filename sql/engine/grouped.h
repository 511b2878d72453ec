/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Rows of a scan, group by group, for GROUP BY.
 *
 * SQLite sorts all rows to group them. This code collects the rows of all pages in a hash table of
 * groups, and sorts only the groups. Texts that repeat within a group are stored once.
 *
 *     PRB_TRY(prb_grouped_create(page, keys, count, &grouped));
 *     while (more pages)
 *             PRB_TRY(prb_grouped_add(grouped, page));
 *     prb_grouped_sort(grouped);
 *     while (prb_grouped_next(grouped)) …
 *
 * Memory: of SQLite, so that a statement's limit counts it (guard.c).
 *
 * Internal to sql/engine/. Threading: one thread at a time. Errors: PRB_ERROR_NOMEM.
 */
#ifndef PRB_SQL_ENGINE_GROUPED_H
#define PRB_SQL_ENGINE_GROUPED_H

#include "sql/engine/page.h"

enum { PRB_GROUP_KEYS = 8 };

/** A column of GROUP BY, and the order of its groups. */
struct prb_group_key {
	unsigned column;
	bool descending;
};

struct prb_grouped;

/** For pages with the columns of @p page; @p keys are copied, at most PRB_GROUP_KEYS. */
struct prb_error *prb_grouped_create(const struct prb_page *page, const struct prb_group_key *keys,
				     unsigned count, struct prb_grouped **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_grouped_destroy(struct prb_grouped *grouped);

/** Copies the rows of a page. */
struct prb_error *prb_grouped_add(struct prb_grouped *grouped,
				  const struct prb_page *page) PRB_MUST_CHECK;

/** After the last page: sorts the groups in SQLite's order, and goes before the first row. */
void prb_grouped_sort(struct prb_grouped *grouped);

/** Goes to the next row; false after the last. Rows of a group keep their order. */
bool prb_grouped_next(struct prb_grouped *grouped);

/** Hands a cell of the present row to SQLite. */
void prb_grouped_result(const struct prb_grouped *grouped, unsigned column,
			sqlite3_context *context);

#endif
