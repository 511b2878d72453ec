/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/nvml.h"
#include "sql/spec/table.h"

enum {
	GPU,
	GPU_UTIL,
	MEMORY_UTIL,
	MEMORY_USED,
	MEMORY_FREE,
	MEMORY_TOTAL,
	TEMPERATURE,
	POWER,
	SM_CLOCK,
	MEMORY_CLOCK,
	ERROR,
};

static const struct prb_column columns[] = {
	[GPU] = {"gpu", PRB_COLUMN_INTEGER, "Number of the GPU, as NVML counts, from 0"},
	[GPU_UTIL] = {"gpu_util", PRB_COLUMN_REAL,
		      "Share of the last moments in which a kernel ran", "%"},
	[MEMORY_UTIL] = {"memory_util", PRB_COLUMN_REAL,
			 "Share of them in which memory was read or written", "%"},
	[MEMORY_USED] = {"memory_used", PRB_COLUMN_INTEGER, "Memory in use by all processes",
			 "bytes"},
	[MEMORY_FREE] = {"memory_free", PRB_COLUMN_INTEGER, "Memory that is not in use", "bytes"},
	[MEMORY_TOTAL] = {"memory_total", PRB_COLUMN_INTEGER, "Memory", "bytes"},
	[TEMPERATURE] = {"temperature", PRB_COLUMN_REAL, "Temperature of the chip", "°C"},
	[POWER] = {"power", PRB_COLUMN_REAL, "Power that it draws", "W"},
	[SM_CLOCK] = {"sm_clock", PRB_COLUMN_INTEGER, "Clock of the processors", "MHz"},
	[MEMORY_CLOCK] = {"memory_clock", PRB_COLUMN_INTEGER, "Clock of the memory", "MHz"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why cells are missing"},
	{},
};

static struct prb_error *row(struct prb_scan *scan, const struct prb_nvml *nvml, unsigned index,
			     prb_nvml_gpu gpu, const char *reason)
{
	prb_auto_str struct prb_str reasons = {};
	struct prb_nvml_memory memory;
	struct prb_nvml_rates rates;
	unsigned number;

	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, GPU, index);
	prb_put_text(scan, ERROR, reason);
	if (!gpu)
		return NULL;
	if (nvml->rates && prb_nvml_ok(nvml, nvml->rates(gpu, &rates), "gpu_util", &reasons)) {
		prb_put_real(scan, GPU_UTIL, rates.gpu);
		prb_put_real(scan, MEMORY_UTIL, rates.memory);
	}
	if (prb_nvml_ok(nvml, prb_nvml_memory(nvml, gpu, &memory), "memory", &reasons)) {
		prb_put_integer(scan, MEMORY_USED, (int64_t)memory.used);
		prb_put_integer(scan, MEMORY_FREE, (int64_t)memory.free);
		prb_put_integer(scan, MEMORY_TOTAL, (int64_t)memory.total);
	}
	if (nvml->temperature &&
	    prb_nvml_ok(nvml, nvml->temperature(gpu, 0, &number), "temperature", &reasons))
		prb_put_real(scan, TEMPERATURE, number);
	if (nvml->power && prb_nvml_ok(nvml, nvml->power(gpu, &number), "power", &reasons))
		prb_put_real(scan, POWER, number / 1000.0);
	if (nvml->clock &&
	    prb_nvml_ok(nvml, nvml->clock(gpu, PRB_NVML_CLOCK_SM, &number), "sm_clock", &reasons))
		prb_put_integer(scan, SM_CLOCK, number);
	if (nvml->clock && prb_nvml_ok(nvml, nvml->clock(gpu, PRB_NVML_CLOCK_MEMORY, &number),
				       "memory_clock", &reasons))
		prb_put_integer(scan, MEMORY_CLOCK, number);
	if (reasons.length)
		prb_put_text(scan, ERROR, prb_str_text(&reasons));
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_nvml_each(scan, row);
}

const struct prb_table prb_table_gpu_utilization = {
	.schema = "gpu",
	.name = "utilization",
	.doc = "Present use of this machine's GPUs, from NVIDIA's driver",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 8,
	.scan = scan,
};
