/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/tables/shared/nvml.h"
#include "sql/spec/table.h"

enum { GPU, PID, MEMORY_USED, ERROR };

static const struct prb_column columns[] = {
	[GPU] = {"gpu", PRB_COLUMN_INTEGER, "Number of the GPU, as NVML counts, from 0"},
	[PID] = {"pid", PRB_COLUMN_INTEGER,
		 "Process that computes on it, as the driver sees its pid"},
	[MEMORY_USED] = {"memory_used", PRB_COLUMN_INTEGER,
			 "Memory of the GPU that the process holds; NULL where it is not told",
			 "bytes"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why the GPU's processes are not told"},
	{},
};

static struct prb_error *error_row(struct prb_scan *scan, unsigned index, const char *reason)
{
	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, GPU, index);
	prb_put_text(scan, ERROR, reason);
	return NULL;
}

static struct prb_error *rows(struct prb_scan *scan, const struct prb_nvml *nvml, unsigned index,
			      prb_nvml_gpu gpu, const char *reason)
{
	prb_auto_str struct prb_str reasons = {};
	prb_auto_free struct prb_nvml_process *list = NULL;
	unsigned count;

	if (!gpu)
		return error_row(scan, index, reason);
	if (!nvml->processes)
		return error_row(scan, index, "the driver is too old to tell");

	int code = prb_nvml_processes(nvml, gpu, &list, &count);

	if (code == PRB_NVML_INSUFFICIENT_SIZE)
		prb_str_printf(&reasons, "processes: %u are more than are looked at", count);
	else
		prb_nvml_ok(nvml, code, "processes", &reasons);
	if (reasons.length)
		return error_row(scan, index, prb_str_text(&reasons));
	for (unsigned i = 0; i < count; i++) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_integer(scan, GPU, index);
		prb_put_integer(scan, PID, list[i].pid);
		if (list[i].memory <= INT64_MAX)
			prb_put_integer(scan, MEMORY_USED, (int64_t)list[i].memory);
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_nvml_each(scan, rows);
}

const struct prb_table prb_table_gpu_processes = {
	.schema = "gpu",
	.name = "processes",
	.doc = "Which processes compute on the GPUs of this machine",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 8,
	.scan = scan,
};
