/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "base/str.h"
#include "sql/engine/settings.h"
#include "sql/spec/table.h"

enum { NAME, VALUE, DESCRIPTION };

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT, "What SET and SHOW call it"},
	[VALUE] = {"value", PRB_COLUMN_TEXT, "Its present value"},
	[DESCRIPTION] = {"description", PRB_COLUMN_TEXT, "What it changes"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	for (const struct prb_setting *s = prb_settings; s->name; s++) {
		prb_auto_str struct prb_str value = {};

		s->get(scan->session, &value);
		PRB_TRY(prb_scan_row(scan));
		prb_put_static(scan, NAME, s->name);
		prb_put_text(scan, VALUE, prb_str_text(&value));
		prb_put_static(scan, DESCRIPTION, s->doc);
	}
	return NULL;
}

const struct prb_table prb_table_information_schema_df_settings = {
	.schema = "information_schema",
	.name = "df_settings",
	.doc = "Settings of the session",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 10,
	.scan = scan,
};
