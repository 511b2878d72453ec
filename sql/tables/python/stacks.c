/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/frames.h"
#include "sql/spec/table.h"

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_frames_scan(scan, PRB_PYTHON_FRAMES, false);
}

const struct prb_table prb_table_python_stacks = {
	.schema = "python",
	.name = "stacks",
	.doc = "Stacks of all Python threads",
	.columns = prb_frame_columns,
	.flags = PRB_TABLE_FRAMES,
	.needs = PRB_NEED_THREADS,
	.needs_keyed = PRB_NEED_THREADS,
	.rows = 500,
	.scan = scan,
};
