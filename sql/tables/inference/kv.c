/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/servers.h"

enum { TOTAL, FREE, CACHED, BLOCK_SIZE, PART };

static const struct prb_column columns[] = {
	[TOTAL] = {"total", PRB_COLUMN_INTEGER, "Blocks that there are; of SGLang tokens"},
	[FREE] = {"free", PRB_COLUMN_INTEGER,
		  "Blocks that no request holds, also those with a prefix"},
	[CACHED] = {"cached", PRB_COLUMN_INTEGER, "Blocks with a prefix that may be used again"},
	[BLOCK_SIZE] = {"block_size", PRB_COLUMN_INTEGER, "Tokens of a block"},
	[PART] = {"part", PRB_COLUMN_TEXT, "The process that manages them"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_server_process *p;

	PRB_TRY(prb_server_of(scan, &p));
	if (!p || !p->part->kv[PRB_KV_TOTAL].text)
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	prb_put_natural(scan, TOTAL, p->kv[PRB_KV_TOTAL]);
	prb_put_natural(scan, FREE, p->kv[PRB_KV_FREE]);
	prb_put_natural(scan, CACHED, p->kv[PRB_KV_CACHED]);
	prb_put_natural(scan, BLOCK_SIZE, p->kv[PRB_KV_BLOCK_SIZE]);
	prb_put_static(scan, PART, p->name);
	return NULL;
}

const struct prb_table prb_table_inference_kv = {
	.schema = "inference",
	.name = "kv",
	.doc = "The KV cache of an inference server, in the process that manages it; else empty",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 1,
	.scan = scan,
};
