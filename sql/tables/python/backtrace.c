/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/frames.h"
#include "sql/spec/table.h"

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_frames_scan(scan, PRB_PYTHON_FRAMES, true);
}

const struct prb_table prb_table_python_backtrace = {
	.schema = "python",
	.name = "backtrace",
	.doc = "Stack of the main thread, or of the threads that tid is constrained to",
	.columns = prb_frame_columns,
	.flags = PRB_TABLE_FRAMES,
	.needs = PRB_NEED_MAIN,
	.needs_keyed = PRB_NEED_THREADS,
	.rows = 50,
	.scan = scan,
};
