/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/nvml.h"

#include "base/cleanup.h"
#include "sql/tables/shared/machine.h"

struct prb_error *prb_nvml_each(struct prb_scan *scan,
				struct prb_error *(*row)(struct prb_scan *scan,
							 const struct prb_nvml *nvml,
							 unsigned index, prb_nvml_gpu gpu,
							 const char *reason))
{
	prb_auto_str struct prb_str why = {};
	struct prb_error *err = NULL;
	struct prb_nvml nvml;
	unsigned count = 0;

	if (!prb_scan_machine(scan))
		return NULL;
	if (!prb_nvml_open(&nvml, &why)) {
		prb_scan_note(scan, "no GPU can be seen: %s", prb_str_text(&why));
		return NULL;
	}
	int code = nvml.count(&count);
	if (code != PRB_NVML_SUCCESS)
		prb_scan_note(scan, "no GPU can be seen: %s", prb_nvml_reason(&nvml, code));
	for (unsigned i = 0; !err && code == PRB_NVML_SUCCESS && i < count; i++) {
		prb_nvml_gpu gpu = NULL;
		int opened = nvml.device(i, &gpu);

		err = row(scan, &nvml, i, opened == PRB_NVML_SUCCESS ? gpu : NULL,
			  opened == PRB_NVML_SUCCESS ? NULL : prb_nvml_reason(&nvml, opened));
	}
	prb_nvml_close(&nvml);
	return err;
}
