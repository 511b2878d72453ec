/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/cleanup.h"
#include "sql/tables/shared/servers.h"

enum { NAME, COUNT, LIMIT, PART, CLASS, PATH };

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT, "'waiting', 'running', 'skipped', 'grammar', …"},
	[COUNT] = {"count", PRB_COLUMN_INTEGER, "How many requests are in it; NULL: not readable"},
	[LIMIT] = {"max_count", PRB_COLUMN_INTEGER, "How many may be in it; NULL: no limit known"},
	[PART] = {"part", PRB_COLUMN_TEXT, "The process that has it: 'engine core', 'API server'"},
	[CLASS] = {"class", PRB_COLUMN_TEXT, "Class of the container that was read"},
	[PATH] = {"path", PRB_COLUMN_TEXT, "Where it was looked for; 'a | b' are tried in order"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_server_process *p;
	const struct prb_server_queue *queue;

	PRB_TRY(prb_server_of(scan, &p));
	if (!p)
		return NULL;
	prb_vec_each (queue, &p->queues) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_static(scan, NAME, queue->name);
		prb_put_natural(scan, COUNT, queue->count);
		if (!strcmp(queue->name, "running"))
			prb_put_natural(scan, LIMIT, p->limit);
		prb_put_static(scan, PART, p->name);
		prb_put_static(scan, CLASS, queue->class);
		prb_put_static(scan, PATH, queue->path);
	}
	return NULL;
}

const struct prb_table prb_table_inference_queues = {
	.schema = "inference",
	.name = "queues",
	.doc = "Queues of requests in a process of an inference server; empty for workers",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 8,
	.scan = scan,
};
