/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/json_rows.h"

#include <sqlite3.h>

#include "base/checked.h"
#include "base/cleanup.h"

static void put(struct prb_scan *scan, unsigned column, sqlite3_stmt *statement)
{
	const int type = sqlite3_column_type(statement, (int)column);
	const enum prb_column_type wanted = scan->table->columns[column].type;

	if (type == SQLITE_INTEGER && wanted == PRB_COLUMN_INTEGER)
		prb_put_integer(scan, column, sqlite3_column_int64(statement, (int)column));
	else if ((type == SQLITE_INTEGER || type == SQLITE_FLOAT) && wanted == PRB_COLUMN_REAL)
		prb_put_real(scan, column, sqlite3_column_double(statement, (int)column));
	else if (type == SQLITE_TEXT && wanted == PRB_COLUMN_TEXT)
		prb_put_bytes(scan, column,
			      (const char *)sqlite3_column_text(statement, (int)column),
			      (size_t)sqlite3_column_bytes(statement, (int)column));
}

static struct prb_error *put_rows(struct prb_scan *scan, sqlite3_stmt *statement)
{
	const int count = sqlite3_column_count(statement);

	while (sqlite3_step(statement) == SQLITE_ROW) {
		PRB_TRY(prb_scan_row(scan));
		for (int i = 0; i < count; i++)
			put(scan, (unsigned)i, statement);
	}
	return NULL;
}

static struct prb_error *failure(const struct prb_scan *scan, sqlite3 *db)
{
	return sqlite3_errcode(db) == SQLITE_NOMEM
		       ? prb_error_nomem()
		       : prb_error_create(PRB_ERROR_BAD_DATA,
					  "%s.%s: what the process says is not "
					  "understood: %.200s",
					  scan->table->schema, scan->table->name,
					  sqlite3_errmsg(db));
}

struct prb_error *prb_scan_json(struct prb_scan *scan, const char *select,
				const struct prb_str *json)
{
	sqlite3_stmt *statement = NULL;
	struct prb_error *err = NULL;
	sqlite3 *db = NULL;

	if (sqlite3_open(":memory:", &db) || sqlite3_prepare_v2(db, select, -1, &statement, NULL) ||
	    sqlite3_bind_text64(statement, 1, prb_str_text(json), json->length, SQLITE_STATIC,
				SQLITE_UTF8))
		err = failure(scan, db);
	if (!err)
		err = put_rows(scan, statement);
	if (sqlite3_finalize(statement) && !err)
		err = failure(scan, db);
	sqlite3_close(db);
	return err;
}
