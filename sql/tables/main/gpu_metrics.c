/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/nvml.h"

enum { TIMESTAMP, GPU, GPU_UTIL, MEMORY_UTIL, MEMORY_USED, TEMPERATURE, POWER, ERROR };
enum { MOST_SAMPLES = 100000 };

static const struct prb_column columns[] = {
	[TIMESTAMP] = {"timestamp", PRB_COLUMN_REAL, "When it was measured, since the epoch", "s",
		       PRB_COLUMN_TIME},
	[GPU] = {"gpu", PRB_COLUMN_INTEGER, "Number of the GPU, as NVML counts, from 0"},
	[GPU_UTIL] = {"gpu_util", PRB_COLUMN_REAL,
		      "Share of the moments before in which a kernel ran", "%"},
	[MEMORY_UTIL] = {"memory_util", PRB_COLUMN_REAL,
			 "Share of them in which memory was read or written", "%"},
	[MEMORY_USED] = {"memory_used", PRB_COLUMN_INTEGER,
			 "Memory in use by all processes; of the newest row only", "bytes"},
	[TEMPERATURE] = {"temperature", PRB_COLUMN_REAL,
			 "Temperature of the chip; of the newest row only", "°C"},
	[POWER] = {"power", PRB_COLUMN_REAL, "Power that it draws; of the newest row only", "W"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why cells are missing"},
	{},
};

/** The driver's samples of one quantity. */
struct samples {
	struct prb_nvml_sample *list;
	unsigned count;
	enum prb_nvml_value_type type;
};

static void samples_deinit(struct samples *samples)
{
	free(samples->list);
}

/** None if the driver keeps none. */
static struct prb_error *read_samples(const struct prb_nvml *nvml, prb_nvml_gpu gpu, int kind,
				      struct prb_str *reasons, struct samples *ret)
{
	int type = 0;
	int code = nvml->samples(gpu, kind, 0, &type, &ret->count, NULL);

	if (!prb_nvml_ok(nvml, code, "earlier values", reasons))
		return NULL;
	ret->count = PRB_MIN(ret->count, (unsigned)MOST_SAMPLES);
	ret->list = calloc(ret->count + 1, sizeof(*ret->list));
	if (!ret->list)
		return prb_error_nomem();
	code = nvml->samples(gpu, kind, 0, &type, &ret->count, ret->list);
	if (!prb_nvml_ok(nvml, code, "earlier values", reasons))
		ret->count = 0;
	ret->count = PRB_MIN(ret->count, (unsigned)MOST_SAMPLES);
	ret->type = type;
	return NULL;
}

static double value_of(const struct samples *samples, unsigned i)
{
	const union prb_nvml_value *value = &samples->list[i].value;

	switch (samples->type) {
	case PRB_NVML_DOUBLE:
		return value->real;
	case PRB_NVML_UNSIGNED:
		return value->number32;
	case PRB_NVML_UNSIGNED_LONG:
	case PRB_NVML_UNSIGNED_LONG_LONG:
	case PRB_NVML_LONG_LONG:
		break;
	}
	return (double)value->number64;
}

/** The driver measures both quantities at the same moments. */
static struct prb_error *put_earlier(struct prb_scan *scan, const struct prb_nvml *nvml,
				     unsigned index, prb_nvml_gpu gpu, struct prb_str *reasons)
{
	__attribute__((cleanup(samples_deinit))) struct samples use = {}, memory = {};
	unsigned at = 0;

	if (!nvml->samples)
		return NULL;
	PRB_TRY(read_samples(nvml, gpu, PRB_NVML_GPU_SAMPLES, reasons, &use));
	if (use.count)
		PRB_TRY(read_samples(nvml, gpu, PRB_NVML_MEMORY_SAMPLES, reasons, &memory));
	for (unsigned i = 0; i < use.count; i++) {
		unsigned long long time = use.list[i].time;

		/* Places that were not filled yet. */
		if (!time)
			continue;
		PRB_TRY(prb_scan_row(scan));
		prb_put_real(scan, TIMESTAMP, (double)time / 1e6);
		prb_put_integer(scan, GPU, index);
		prb_put_real(scan, GPU_UTIL, value_of(&use, i));
		while (at < memory.count && memory.list[at].time < time)
			at++;
		if (at < memory.count && memory.list[at].time == time)
			prb_put_real(scan, MEMORY_UTIL, value_of(&memory, at));
	}
	return NULL;
}

static struct prb_error *put_present(struct prb_scan *scan, const struct prb_nvml *nvml,
				     unsigned index, prb_nvml_gpu gpu, struct prb_str *reasons)
{
	struct prb_nvml_memory memory;
	struct prb_nvml_rates rates;
	unsigned number;

	PRB_TRY(prb_scan_row(scan));
	prb_put_real(scan, TIMESTAMP, prb_clock_calendar_seconds());
	prb_put_integer(scan, GPU, index);
	if (gpu && nvml->rates &&
	    prb_nvml_ok(nvml, nvml->rates(gpu, &rates), "gpu_util", reasons)) {
		prb_put_real(scan, GPU_UTIL, rates.gpu);
		prb_put_real(scan, MEMORY_UTIL, rates.memory);
	}
	if (gpu && prb_nvml_ok(nvml, prb_nvml_memory(nvml, gpu, &memory), "memory", reasons))
		prb_put_integer(scan, MEMORY_USED, (int64_t)memory.used);
	if (gpu && nvml->temperature &&
	    prb_nvml_ok(nvml, nvml->temperature(gpu, 0, &number), "temperature", reasons))
		prb_put_real(scan, TEMPERATURE, number);
	if (gpu && nvml->power && prb_nvml_ok(nvml, nvml->power(gpu, &number), "power", reasons))
		prb_put_real(scan, POWER, number / 1000.0);
	return NULL;
}

static struct prb_error *row(struct prb_scan *scan, const struct prb_nvml *nvml, unsigned index,
			     prb_nvml_gpu gpu, const char *reason)
{
	prb_auto_str struct prb_str reasons = {};

	if (gpu)
		PRB_TRY(put_earlier(scan, nvml, index, gpu, &reasons));
	PRB_TRY(put_present(scan, nvml, index, gpu, &reasons));
	prb_put_text(scan, ERROR, reasons.length ? prb_str_text(&reasons) : reason);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_nvml_each(scan, row);
}

const struct prb_table prb_table_gpu_metrics = {
	.schema = "main",
	.name = "gpu_metrics",
	.doc = "Use of this machine's GPUs in the last seconds, as NVIDIA's driver keeps it, and "
	       "now",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 200,
	.scan = scan,
};
