/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/proc/signal_text.h"
#include "sql/tables/shared/facts.h"
#include "sql/spec/table.h"

enum { NUMBER, NAME, CAUGHT, IGNORED, BLOCKED, PENDING };

static const struct prb_column columns[] = {
	[NUMBER] = {"number", PRB_COLUMN_INTEGER, "Number of the signal"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "SIGTERM and the like"},
	[CAUGHT] = {"caught", PRB_COLUMN_INTEGER, "1 if the process has a handler for it"},
	[IGNORED] = {"ignored", PRB_COLUMN_INTEGER, "1 if the process ignores it"},
	[BLOCKED] = {"blocked", PRB_COLUMN_INTEGER, "1 if the first thread blocks it"},
	[PENDING] = {"pending", PRB_COLUMN_INTEGER,
		     "1 if it was sent to the process or the first thread and not delivered yet"},
	{},
};

static uint64_t mask(const char *status, const char *name)
{
	const char *value = prb_text_field(status, name);

	return value ? strtoull(value, NULL, 16) : 0;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_str struct prb_str text = {}, name = {};
	bool told;

	PRB_TRY(prb_fact_table(scan, &text, &told, "status"));
	if (!told)
		return NULL;
	const char *status = prb_str_text(&text);
	uint64_t caught = mask(status, "SigCgt"), ignored = mask(status, "SigIgn");
	uint64_t blocked = mask(status, "SigBlk");
	uint64_t pending = mask(status, "SigPnd") | mask(status, "ShdPnd");

	for (int number = 1; number <= 64; number++) {
		unsigned bit = (unsigned)number - 1;

		PRB_TRY(prb_scan_row(scan));
		prb_put_integer(scan, NUMBER, number);
		prb_str_truncate(&name, 0);
		prb_put_signal(&name, number);
		prb_put_text(scan, NAME, prb_str_text(&name));
		prb_put_integer(scan, CAUGHT, caught >> bit & 1);
		prb_put_integer(scan, IGNORED, ignored >> bit & 1);
		prb_put_integer(scan, BLOCKED, blocked >> bit & 1);
		prb_put_integer(scan, PENDING, pending >> bit & 1);
	}
	return NULL;
}

const struct prb_table prb_table_process_signals = {
	.schema = "process",
	.name = "signals",
	.doc = "Signals, and what becomes of each",
	.columns = columns,
	.rows = 64,
	.scan = scan,
};
