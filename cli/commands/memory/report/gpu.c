/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GPU memory held by a process, from NVIDIA's driver. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "cli/commands/memory/report/memory.h"
#include "sql/tables/shared/nvml.h"

enum { MOST_GPUS = 64 };

/** Whether CUDA is loaded there; if not, the driver is not asked. */
static bool uses_cuda(struct prb_target *target)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(target, &text, "maps");

	return !err && strstr(prb_str_text(&text), "/libcuda.so");
}

/** The bytes of the process on that GPU; -1: the driver does not name it there. */
static int64_t find_process(const struct prb_nvml *nvml, prb_nvml_gpu gpu, pid_t pid)
{
	prb_auto_free struct prb_nvml_process *list = NULL;
	unsigned count;

	if (prb_nvml_processes(nvml, gpu, &list, &count) != PRB_NVML_SUCCESS)
		return -1;
	for (unsigned i = 0; i < count; i++)
		if (list[i].pid == (unsigned)pid && list[i].memory <= INT64_MAX)
			return (int64_t)list[i].memory;
	return -1;
}

static struct prb_error *add(struct prb_memory *m, const struct prb_nvml *nvml, unsigned index)
{
	struct prb_nvml_memory memory;
	struct prb_memory_gpu *added;
	prb_nvml_gpu gpu = NULL;
	int64_t own;

	if (nvml->device(index, &gpu) != PRB_NVML_SUCCESS)
		return NULL;
	own = find_process(nvml, gpu, m->target->pid);
	if (own < 0)
		return NULL;
	added = prb_vec_push(&m->gpus);
	if (!added)
		return prb_error_nomem();
	*added = (struct prb_memory_gpu){.index = index, .own = own, .used = -1, .total = -1};
	if (nvml->name && nvml->name(gpu, added->name, sizeof(added->name)) != PRB_NVML_SUCCESS)
		added->name[0] = 0;
	if (prb_nvml_memory(nvml, gpu, &memory) == PRB_NVML_SUCCESS) {
		added->used = (int64_t)memory.used;
		added->total = (int64_t)memory.total;
	}
	return NULL;
}

struct prb_error *prb_memory_read_gpus(struct prb_memory *m)
{
	struct prb_error *err = NULL;
	struct prb_nvml nvml;
	unsigned count = 0;

	if (!m->target->live || !m->target->local || !uses_cuda(m->target))
		return NULL;
	if (!prb_nvml_open(&nvml, &m->no_gpu))
		return NULL;
	if (nvml.count(&count) != PRB_NVML_SUCCESS)
		count = 0;
	for (unsigned i = 0; !err && i < PRB_MIN(count, (unsigned)MOST_GPUS); i++)
		err = add(m, &nvml, i);
	prb_nvml_close(&nvml);
	if (!m->gpus.count)
		prb_str_puts(&m->no_gpu, "NVIDIA's driver does not name this process");
	return err;
}
