/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "base/str.h"
#include "control/config.h"
#include "sql/engine/settings.h"
#include "sql/spec/table.h"

enum { NAME, VALUE, DESCRIPTION };

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT, "What SET and SHOW call it"},
	[VALUE] = {"value", PRB_COLUMN_TEXT, "Its present value"},
	[DESCRIPTION] = {"description", PRB_COLUMN_TEXT, "What it changes"},
	{},
};

/** Settings of the first target, which are in its agent. */
static struct prb_error *put_config(struct prb_scan *scan)
{
	__attribute__((cleanup(prb_config_deinit))) struct prb_config config = {};
	struct prb_target *target = prb_session_target(scan->session);

	if (!target || !target->loadable)
		return NULL;
	PRB_TRY(prb_config_read(target, &config));
	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_static(scan, NAME, prb_config_keys[i].name);
		prb_put_text(scan, VALUE, prb_str_text(&config.values[i]));
		prb_put_static(scan, DESCRIPTION, prb_config_keys[i].doc);
	}
	return NULL;
}

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
	return put_config(scan);
}

const struct prb_table prb_table_information_schema_df_settings = {
	.schema = "information_schema",
	.name = "df_settings",
	.doc = "Settings of the session, and of the first target's agent",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 10,
	.scan = scan,
};
