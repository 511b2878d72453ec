/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/spec/table.h"

enum { NAME, COMMENT };

static const struct prb_column columns[] = {
	[NAME] = {"schema_name", PRB_COLUMN_TEXT, "Name of the schema"},
	[COMMENT] = {"comment", PRB_COLUMN_TEXT, "What its tables are about"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	for (const struct prb_schema *s = prb_schemas; s->name; s++) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_static(scan, NAME, s->name);
		prb_put_static(scan, COMMENT, s->doc);
	}
	return NULL;
}

const struct prb_table prb_table_information_schema_schemata = {
	.schema = "information_schema",
	.name = "schemata",
	.doc = "All schemas",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 8,
	.scan = scan,
};
