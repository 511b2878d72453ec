/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/servers.h"

enum { SIZES, EAGER, PART };

static const struct prb_column columns[] = {
	[SIZES] = {"sizes", PRB_COLUMN_TEXT, "Batch sizes that are captured, as a list"},
	[EAGER] = {"eager", PRB_COLUMN_INTEGER, "1 if no graph is used; NULL: not known"},
	[PART] = {"part", PRB_COLUMN_TEXT, "The process that was read"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_server_process *p;

	PRB_TRY(prb_server_of(scan, &p));
	if (!p || (!p->graph_sizes && p->eager < 0))
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	prb_put_static(scan, SIZES, p->graph_sizes);
	prb_put_natural(scan, EAGER, p->eager);
	prb_put_static(scan, PART, p->name);
	return NULL;
}

const struct prb_table prb_table_inference_graphs = {
	.schema = "inference",
	.name = "graphs",
	.doc = "CUDA graphs of an inference server, as its scheduler is configured; else empty",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 1,
	.scan = scan,
};
