/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/tables/shared/facts.h"
#include "sql/spec/table.h"

enum { READ_CHARS, WRITE_CHARS, READ_CALLS, WRITE_CALLS, READ_BYTES, WRITE_BYTES, CANCELLED };

static const struct prb_column columns[] = {
	[READ_CHARS] = {"read_chars", PRB_COLUMN_INTEGER,
			"What system calls have read, from wherever", "bytes"},
	[WRITE_CHARS] = {"write_chars", PRB_COLUMN_INTEGER,
			 "What system calls have written, to wherever", "bytes"},
	[READ_CALLS] = {"read_calls", PRB_COLUMN_INTEGER, "System calls that read"},
	[WRITE_CALLS] = {"write_calls", PRB_COLUMN_INTEGER, "System calls that write"},
	[READ_BYTES] = {"read_bytes", PRB_COLUMN_INTEGER, "What was read from disks", "bytes"},
	[WRITE_BYTES] = {"write_bytes", PRB_COLUMN_INTEGER, "What was written to disks", "bytes"},
	[CANCELLED] = {"cancelled_write_bytes", PRB_COLUMN_INTEGER,
		       "Part of it that was truncated before it got there", "bytes"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	static const char *const fields[] = {
		[READ_CHARS] = "rchar",
		[WRITE_CHARS] = "wchar",
		[READ_CALLS] = "syscr",
		[WRITE_CALLS] = "syscw",
		[READ_BYTES] = "read_bytes",
		[WRITE_BYTES] = "write_bytes",
		[CANCELLED] = "cancelled_write_bytes",
	};
	prb_auto_str struct prb_str text = {};
	bool told;

	PRB_TRY(prb_fact_table(scan, &text, &told, "io"));
	if (!told)
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	for (unsigned i = 0; i < PRB_ARRAY_SIZE(fields); i++)
		prb_put_field(scan, i, prb_str_text(&text), fields[i], 1);
	return NULL;
}

const struct prb_table prb_table_process_io = {
	.schema = "process",
	.name = "io",
	.doc = "What the process has read and written since it was started: one row",
	.columns = columns,
	.rows = 1,
	.scan = scan,
};
