/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/tables/shared/facts.h"
#include "sql/spec/table.h"
#include "values/environment.h"

enum { NAME, VALUE };

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name of the variable"},
	[VALUE] = {"value", PRB_COLUMN_TEXT, "Its value when the program was started"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_str struct prb_str text = {};
	bool told, inside = false;

	PRB_TRY(prb_fact_told(
		scan, prb_environment_read(prb_instant_target(scan->instant), &text, &inside),
		&told));
	if (inside)
		prb_scan_note(scan, "the program has written over its environment, as setproctitle "
				    "does: this is os.environ");
	for (size_t at = 0, length; at < text.length; at += length + 1) {
		const char *variable = text.data + at;

		length = strlen(variable);
		/* A program that writes over its environment may leave empty strings behind. */
		if (!length)
			continue;
		size_t name = strcspn(variable, "=");
		PRB_TRY(prb_scan_row(scan));
		prb_put_bytes(scan, NAME, variable, name);
		if (variable[name])
			prb_put_text(scan, VALUE, variable + name + 1);
	}
	return NULL;
}

const struct prb_table prb_table_process_environ = {
	.schema = "process",
	.name = "environ",
	.doc = "Environment that the program was started with; os.environ may differ by now",
	.columns = columns,
	.rows = 50,
	.scan = scan,
};

const struct prb_table prb_table_process_envs = {
	.schema = "process",
	.name = "envs",
	.doc = "Another name of process.environ",
	.columns = columns,
	.rows = 50,
	.scan = scan,
};
