/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/engine/table_sources.h"
#include "sql/spec/table.h"

enum { SCHEMA, NAME, TYPE, COMMENT };

static const struct prb_column columns[] = {
	[SCHEMA] = {"table_schema", PRB_COLUMN_TEXT, "Schema the table is in"},
	[NAME] = {"table_name", PRB_COLUMN_TEXT, "Name of the table"},
	[TYPE] = {"table_type", PRB_COLUMN_TEXT, "Always BASE TABLE"},
	[COMMENT] = {"comment", PRB_COLUMN_TEXT, "Description of the table"},
	{},
};

static struct prb_error *put(struct prb_scan *scan, const struct prb_table *table)
{
	PRB_TRY(prb_scan_row(scan));
	prb_put_static(scan, SCHEMA, table->schema);
	prb_put_static(scan, NAME, table->name);
	prb_put_static(scan, TYPE, "BASE TABLE");
	prb_put_static(scan, COMMENT, table->doc);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_table *table;

	PRB_TRY(prb_session_look_for_tables(scan->session));
	for (size_t i = 0; (table = prb_session_table(scan->session, i)); i++)
		PRB_TRY(put(scan, table));
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
