/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/greenlets.h"

enum { GREENLET, DEPTH, FUNC, QUALNAME, FILE_, LINENO, END_LINENO, COL, END_COL, OF };

static const struct prb_column columns[] = {
	[GREENLET] = {"greenlet", PRB_COLUMN_INTEGER, "Address of the greenlet",
		      .flags = PRB_COLUMN_KEY},
	[DEPTH] = {"depth", PRB_COLUMN_INTEGER, "Place in its stack; 0 is the innermost frame"},
	[FUNC] = {"func", PRB_COLUMN_TEXT, "Name of the function"},
	[QUALNAME] =
		{"qualname", PRB_COLUMN_TEXT,
		 "Its name with classes and functions around it; NULL where it cannot be known"},
	[FILE_] = {"file", PRB_COLUMN_TEXT, "Source file, as the code names it"},
	[LINENO] = {"lineno", PRB_COLUMN_INTEGER, "Line that it is at, from 1"},
	[END_LINENO] = {"end_lineno", PRB_COLUMN_INTEGER,
			"Last line of that expression (Python 3.11 and later)"},
	[COL] = {"col", PRB_COLUMN_INTEGER,
		 "First column of that expression, from 0 (3.11 and later)", "bytes"},
	[END_COL] = {"end_col", PRB_COLUMN_INTEGER, "Column behind that expression", "bytes"},
	[OF] = {"of", PRB_COLUMN_INTEGER, "Argument of the table: the greenlet, as its address",
		.flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN},
	{},
};

static bool is_wanted(const struct prb_scan *scan, uint64_t greenlet)
{
	int64_t address;

	return (!prb_scan_key_integer(scan, GREENLET, &address) || (uint64_t)address == greenlet) &&
	       (!prb_scan_key_integer(scan, OF, &address) || (uint64_t)address == greenlet);
}

static struct prb_error *put(struct prb_scan *scan, const struct prb_greenlet *g,
			     const struct prb_interpreter *of)
{
	(void)of;
	for (size_t i = 0; i < g->frames.count && is_wanted(scan, g->address); i++) {
		const struct prb_greenlet_frame *frame = &g->frames.items[i];

		PRB_TRY(prb_scan_row(scan));
		prb_put_integer(scan, GREENLET, (int64_t)g->address);
		prb_put_integer(scan, OF, (int64_t)g->address);
		prb_put_integer(scan, DEPTH, (int64_t)i);
		prb_put_static(scan, FUNC, frame->code.name);
		prb_put_static(scan, QUALNAME, frame->qualname);
		prb_put_static(scan, FILE_, frame->code.file);
		prb_put_natural(scan, LINENO, frame->location.line > 0 ? frame->location.line : -1);
		prb_put_natural(scan, END_LINENO,
				frame->location.end_line > 0 ? frame->location.end_line : -1);
		prb_put_natural(scan, COL, frame->location.col);
		prb_put_natural(scan, END_COL, frame->location.end_col);
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_greenlets_scan(scan, "python.greenlet_frames", put);
}

const struct prb_table prb_table_python_greenlet_frames = {
	.schema = "python",
	.name = "greenlet_frames",
	.doc = "Frames of the greenlets that are suspended",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 500,
	.scan = scan,
};
