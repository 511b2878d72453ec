/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A kernel that spins: the GPU is busy all the time, moves no memory and draws little power. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "judge/server/private.h"
#include "target/gpu/nvml.h"

static bool computes(const struct prb_nvml *nvml, prb_nvml_gpu gpu, pid_t pid)
{
	prb_auto_free struct prb_nvml_process *list = NULL;
	unsigned count = 0;

	if (prb_nvml_processes(nvml, gpu, &list, &count) != PRB_NVML_SUCCESS)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (list[i].pid == (unsigned)pid)
			return true;
	return false;
}

static void put(struct prb_str *text, const struct prb_nvml *nvml, unsigned index, prb_nvml_gpu gpu)
{
	struct prb_nvml_rates rates = {};
	unsigned power = 0, limit = 0;

	if (nvml->rates(gpu, &rates) || nvml->power(gpu, &power) ||
	    nvml->power_limit(gpu, &limit) || rates.gpu < prb_limit(PRB_LIMIT_GPU_BUSY) ||
	    rates.memory > prb_limit(PRB_LIMIT_GPU_MEMORY) ||
	    power > limit * prb_limit(PRB_LIMIT_GPU_POWER) / 100)
		return;
	prb_str_printf(
		text,
		"; GPU %u is %u %% busy at %u W of %u W and its memory %u %%: a kernel spins, "
		"and the Python frame is its victim",
		index, rates.gpu, power / 1000, limit / 1000, rates.memory);
}

void prb_server_put_spinning(struct prb_str *text, const struct prb_server_process *p)
{
	prb_auto_str struct prb_str why = {};
	struct prb_nvml nvml;
	prb_nvml_gpu gpu;
	unsigned count = 0;

	if (!p->target || !prb_nvml_open(&nvml, &why))
		return;
	if (nvml.rates && nvml.power && nvml.power_limit && nvml.count(&count) == PRB_NVML_SUCCESS)
		for (unsigned i = 0; i < count; i++)
			if (nvml.device(i, &gpu) == PRB_NVML_SUCCESS &&
			    computes(&nvml, gpu, p->pid))
				put(text, &nvml, i, gpu);
	prb_nvml_close(&nvml);
}
