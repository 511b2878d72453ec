/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/spec/table.h"

enum { VALUE, START, STOP, STEP };

static const struct prb_column columns[] = {
	[VALUE] = {"value", PRB_COLUMN_INTEGER, "The number"},
	[START] = {"start", PRB_COLUMN_INTEGER, "First argument: where it begins; 0 if not given",
		   .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN},
	[STOP] = {"stop", PRB_COLUMN_INTEGER, "Second argument: the last number at most",
		  .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN},
	[STEP] = {"step", PRB_COLUMN_INTEGER, "Third argument; 1 if not given",
		  .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN},
	{},
};

static int64_t argument(const struct prb_scan *scan, unsigned column, int64_t otherwise)
{
	int64_t value;

	return prb_scan_key_integer(scan, column, &value) ? value : otherwise;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	int64_t start = argument(scan, START, 0), step = argument(scan, STEP, 1), stop, value;

	if (!prb_scan_key_integer(scan, STOP, &stop))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 "generate_series needs to know where to stop"),
			"for example generate_series(1, 10)");
	if (!step)
		return prb_error_create(PRB_ERROR_USAGE, "generate_series with a step of 0 would "
							 "never end");
	for (;; scan->position++) {
		if (__builtin_mul_overflow((int64_t)scan->position, step, &value) ||
		    __builtin_add_overflow(value, start, &value) ||
		    (step > 0 ? value > stop : value < stop))
			return NULL;
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(prb_scan_row(scan));
		prb_put_integer(scan, VALUE, value);
		prb_put_integer(scan, START, start);
		prb_put_integer(scan, STOP, stop);
		prb_put_integer(scan, STEP, step);
	}
}

const struct prb_table prb_table_generate_series = {
	.schema = "main",
	.name = "generate_series",
	.doc = "Numbers from start to stop, as generate_series(start, stop, step)",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 1000,
	.scan = scan,
};
