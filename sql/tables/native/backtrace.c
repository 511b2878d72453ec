/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/frames.h"
#include "sql/spec/table.h"

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_frames_scan(scan, PRB_NATIVE_FRAMES, false);
}

const struct prb_table prb_table_native_backtrace = {
	.schema = "native",
	.name = "backtrace",
	.doc = "Stacks of all threads, C and C++ frames merged with the Python frames, "
	       "without the interpreter's own",
	.columns = prb_frame_columns,
	.flags = PRB_TABLE_FRAMES,
	.needs = PRB_NEED_THREADS | PRB_NEED_NATIVE,
	.needs_keyed = PRB_NEED_THREADS | PRB_NEED_NATIVE,
	.rows = 2000,
	.scan = scan,
};
