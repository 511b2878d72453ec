/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/engine/table_sources.h"
#include "sql/spec/table.h"

enum { SCHEMA, TABLE, NAME, POSITION, TYPE, UNIT, HIDDEN, COMMENT };

static const struct prb_column columns[] = {
	[SCHEMA] = {"table_schema", PRB_COLUMN_TEXT, "Schema of the table"},
	[TABLE] = {"table_name", PRB_COLUMN_TEXT, "Table the column is in"},
	[NAME] = {"column_name", PRB_COLUMN_TEXT, "Name of the column"},
	[POSITION] = {"ordinal_position", PRB_COLUMN_INTEGER, "Place in the table, from 1"},
	[TYPE] = {"data_type", PRB_COLUMN_TEXT, "INTEGER, REAL, TEXT or ANY"},
	[UNIT] = {"unit", PRB_COLUMN_TEXT, "What it is measured in; NULL if in nothing"},
	[HIDDEN] = {"is_hidden", PRB_COLUMN_TEXT,
		    "YES if SELECT * leaves it out: an argument of the table, else NO"},
	[COMMENT] = {"column_comment", PRB_COLUMN_TEXT, "Description of the column"},
	{},
};

static struct prb_error *table_rows(struct prb_scan *scan, const struct prb_table *table)
{
	static const char *const types[] = {"INTEGER", "REAL", "TEXT", "ANY"};

	for (const struct prb_column *c = table->columns; c->name; c++) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_static(scan, SCHEMA, table->schema);
		prb_put_static(scan, TABLE, table->name);
		prb_put_static(scan, NAME, c->name);
		prb_put_integer(scan, POSITION, c - table->columns + 1);
		prb_put_static(scan, TYPE, types[c->type]);
		prb_put_static(scan, UNIT, c->unit);
		prb_put_static(scan, HIDDEN, c->flags & PRB_COLUMN_HIDDEN ? "YES" : "NO");
		prb_put_static(scan, COMMENT, c->doc);
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_table *table;

	if (!scan->position)
		PRB_TRY(prb_session_look_for_tables(scan->session));
	for (; (table = prb_session_table(scan->session, scan->position)); scan->position++) {
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(table_rows(scan, table));
	}
	return NULL;
}

const struct prb_table prb_table_information_schema_columns = {
	.schema = "information_schema",
	.name = "columns",
	.doc = "Columns of all tables",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 500,
	.scan = scan,
};
