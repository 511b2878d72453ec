/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Rows of a table from a document in JSON, parsed by SQLite.
 *
 * Threading: as the scan. The document is untrusted: invalid JSON is an error, and cells of another
 * type than their column's are NULL.
 */
#ifndef PRB_SQL_ENGINE_JSON_ROWS_H
#define PRB_SQL_ENGINE_JSON_ROWS_H

#include "base/error.h"
#include "base/str.h"
#include "sql/spec/table.h"

/** Appends the rows of @p select, whose ?1 is @p json and whose columns are the table's. */
struct prb_error *prb_scan_json(struct prb_scan *scan, const char *select,
				const struct prb_str *json) PRB_MUST_CHECK;

#endif
