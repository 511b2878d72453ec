/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/spec/table.h"

enum { SCHEMA, NAME, TYPE, COMMENT };

static const struct prb_column columns[] = {
	[SCHEMA] = {"table_schema", PRB_COLUMN_TEXT, "Schema the table is in"},
	[NAME] = {"table_name", PRB_COLUMN_TEXT, "Name of the table"},
	[TYPE] = {"table_type", PRB_COLUMN_TEXT, "Always BASE TABLE"},
	[COMMENT] = {"comment", PRB_COLUMN_TEXT, "What the table tells"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_static(scan, SCHEMA, (*t)->schema);
		prb_put_static(scan, NAME, (*t)->name);
		prb_put_static(scan, TYPE, "BASE TABLE");
		prb_put_static(scan, COMMENT, (*t)->doc);
	}
	return NULL;
}

const struct prb_table prb_table_information_schema_tables = {
	.schema = "information_schema",
	.name = "tables",
	.doc = "All tables",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 50,
	.scan = scan,
};
