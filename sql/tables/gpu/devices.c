/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/nvml.h"
#include "sql/spec/table.h"

enum {
	GPU,
	NAME,
	UUID,
	PCI,
	MINOR,
	CAPABILITY,
	MEMORY_TOTAL,
	POWER_LIMIT,
	DRIVER,
	CUDA,
	ERROR,
};

static const struct prb_column columns[] = {
	[GPU] = {"gpu", PRB_COLUMN_INTEGER, "Number of the GPU, as NVML counts, from 0"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name of the model"},
	[UUID] = {"uuid", PRB_COLUMN_TEXT, "Its own id, as in CUDA_VISIBLE_DEVICES"},
	[PCI] = {"pci", PRB_COLUMN_TEXT, "Where on the PCI bus it is"},
	[MINOR] = {"minor", PRB_COLUMN_INTEGER, "Number in the name of /dev/nvidiaN"},
	[CAPABILITY] = {"compute_capability", PRB_COLUMN_TEXT, "What CUDA calls it: 9.0"},
	[MEMORY_TOTAL] = {"memory_total", PRB_COLUMN_INTEGER, "Memory", "bytes"},
	[POWER_LIMIT] = {"power_limit", PRB_COLUMN_REAL, "Most power that it may draw", "W"},
	[DRIVER] = {"driver_version", PRB_COLUMN_TEXT, "Version of the driver"},
	[CUDA] = {"cuda_version", PRB_COLUMN_TEXT, "Newest CUDA that the driver runs: 12.4"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why cells are missing"},
	{},
};

static void put_texts(struct prb_scan *scan, const struct prb_nvml *nvml, prb_nvml_gpu gpu,
		      struct prb_str *reasons)
{
	char text[PRB_NVML_NAME_SIZE];
	struct prb_nvml_pci pci = {};

	if (nvml->name && prb_nvml_ok(nvml, nvml->name(gpu, text, sizeof(text)), "name", reasons))
		prb_put_text(scan, NAME, text);
	if (nvml->uuid && prb_nvml_ok(nvml, nvml->uuid(gpu, text, sizeof(text)), "uuid", reasons))
		prb_put_text(scan, UUID, text);
	if (nvml->pci && prb_nvml_ok(nvml, nvml->pci(gpu, &pci), "pci", reasons))
		prb_put_format(scan, PCI, "%.*s", (int)sizeof(pci.id), pci.id);
	if (nvml->driver_version &&
	    prb_nvml_ok(nvml, nvml->driver_version(text, sizeof(text)), "driver_version", reasons))
		prb_put_text(scan, DRIVER, text);
}

static struct prb_error *row(struct prb_scan *scan, const struct prb_nvml *nvml, unsigned index,
			     prb_nvml_gpu gpu, const char *reason)
{
	prb_auto_str struct prb_str reasons = {};
	struct prb_nvml_memory memory;
	int major, minor;
	unsigned number;

	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, GPU, index);
	prb_put_text(scan, ERROR, reason);
	if (!gpu)
		return NULL;
	put_texts(scan, nvml, gpu, &reasons);
	if (nvml->minor && prb_nvml_ok(nvml, nvml->minor(gpu, &number), "minor", &reasons))
		prb_put_integer(scan, MINOR, number);
	if (nvml->capability && prb_nvml_ok(nvml, nvml->capability(gpu, &major, &minor),
					    "compute_capability", &reasons))
		prb_put_format(scan, CAPABILITY, "%d.%d", major, minor);
	if (prb_nvml_ok(nvml, prb_nvml_memory(nvml, gpu, &memory), "memory", &reasons))
		prb_put_integer(scan, MEMORY_TOTAL, (int64_t)memory.total);
	if (nvml->power_limit &&
	    prb_nvml_ok(nvml, nvml->power_limit(gpu, &number), "power_limit", &reasons))
		prb_put_real(scan, POWER_LIMIT, number / 1000.0);
	if (nvml->cuda_version &&
	    prb_nvml_ok(nvml, nvml->cuda_version(&major), "cuda_version", &reasons))
		prb_put_format(scan, CUDA, "%d.%d", major / 1000, major % 1000 / 10);
	if (reasons.length)
		prb_put_text(scan, ERROR, prb_str_text(&reasons));
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_nvml_each(scan, row);
}

const struct prb_table prb_table_gpu_devices = {
	.schema = "gpu",
	.name = "devices",
	.doc = "GPUs of this machine, from NVIDIA's driver",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 8,
	.scan = scan,
};
