/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/gpu/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

static const char library_name[] = "libnvidia-ml.so.1";

static const struct {
	const char *name;
	size_t place;
} functions[] = {
	{"nvmlInit_v2", offsetof(struct prb_nvml, init)},
	{"nvmlShutdown", offsetof(struct prb_nvml, shutdown)},
	{"nvmlErrorString", offsetof(struct prb_nvml, error)},
	{"nvmlSystemGetDriverVersion", offsetof(struct prb_nvml, driver_version)},
	{"nvmlSystemGetCudaDriverVersion_v2", offsetof(struct prb_nvml, cuda_version)},
	{"nvmlDeviceGetCount_v2", offsetof(struct prb_nvml, count)},
	{"nvmlDeviceGetHandleByIndex_v2", offsetof(struct prb_nvml, device)},
	{"nvmlDeviceGetName", offsetof(struct prb_nvml, name)},
	{"nvmlDeviceGetUUID", offsetof(struct prb_nvml, uuid)},
	{"nvmlDeviceGetPciInfo_v3", offsetof(struct prb_nvml, pci)},
	{"nvmlDeviceGetMinorNumber", offsetof(struct prb_nvml, minor)},
	{"nvmlDeviceGetCudaComputeCapability", offsetof(struct prb_nvml, capability)},
	{"nvmlDeviceGetMemoryInfo", offsetof(struct prb_nvml, memory_v1)},
	{"nvmlDeviceGetMemoryInfo_v2", offsetof(struct prb_nvml, memory_v2)},
	{"nvmlDeviceGetUtilizationRates", offsetof(struct prb_nvml, rates)},
	{"nvmlDeviceGetTemperature", offsetof(struct prb_nvml, temperature)},
	{"nvmlDeviceGetPowerUsage", offsetof(struct prb_nvml, power)},
	{"nvmlDeviceGetEnforcedPowerLimit", offsetof(struct prb_nvml, power_limit)},
	{"nvmlDeviceGetClockInfo", offsetof(struct prb_nvml, clock)},
	{"nvmlDeviceGetSamples", offsetof(struct prb_nvml, samples)},
	{"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct prb_nvml, processes)},
};

const char *prb_nvml_reason(const struct prb_nvml *nvml, int code)
{
	const char *reason = nvml->error ? nvml->error(code) : NULL;

	return reason ? reason : "an error without a name";
}

bool prb_nvml_open(struct prb_nvml *ret, struct prb_str *why)
{
	*ret = (struct prb_nvml){.library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL)};
	if (!ret->library) {
		prb_str_printf(why, "%s is not installed here", library_name);
		return false;
	}
	for (size_t i = 0; i < PRB_ARRAY_SIZE(functions); i++)
		*(void **)((char *)ret + functions[i].place) =
			dlsym(ret->library, functions[i].name);
	if (!ret->init || !ret->shutdown || !ret->count || !ret->device) {
		prb_str_printf(why, "%s lacks functions that are needed", library_name);
		dlclose(ret->library);
		return false;
	}
	int code = ret->init();
	if (code == PRB_NVML_SUCCESS)
		return true;
	prb_str_printf(why, "%s: %s", library_name, prb_nvml_reason(ret, code));
	dlclose(ret->library);
	return false;
}

void prb_nvml_close(struct prb_nvml *nvml)
{
	nvml->shutdown();
	dlclose(nvml->library);
}

int prb_nvml_memory(const struct prb_nvml *nvml, prb_nvml_gpu gpu, struct prb_nvml_memory *ret)
{
	struct prb_nvml_memory_v2 memory = {.version = PRB_NVML_MEMORY_V2};

	if (nvml->memory_v2 && nvml->memory_v2(gpu, &memory) == PRB_NVML_SUCCESS) {
		*ret = (struct prb_nvml_memory){memory.total, memory.free, memory.used};
		return PRB_NVML_SUCCESS;
	}
	return nvml->memory_v1 ? nvml->memory_v1(gpu, ret) : PRB_NVML_FUNCTION_NOT_FOUND;
}

bool prb_nvml_ok(const struct prb_nvml *nvml, int code, const char *what, struct prb_str *reasons)
{
	if (code == PRB_NVML_SUCCESS)
		return true;
	prb_str_printf(reasons, "%s%s: %s", reasons->length ? "; " : "", what,
		       prb_nvml_reason(nvml, code));
	return false;
}

int prb_nvml_processes(const struct prb_nvml *nvml, prb_nvml_gpu gpu, struct prb_nvml_process **ret,
		       unsigned *count)
{
	/* Some may begin between two calls. */
	enum { FIRST = 64, MORE = 16, MOST = 1 << 16, TRIES = 4 };
	int code = nvml->processes ? PRB_NVML_INSUFFICIENT_SIZE : PRB_NVML_FUNCTION_NOT_FOUND;

	*ret = NULL;
	*count = FIRST - MORE;
	for (int i = 0; i < TRIES && code == PRB_NVML_INSUFFICIENT_SIZE && *count <= MOST; i++) {
		free(*ret);
		*count += MORE;
		*ret = calloc(*count, sizeof(**ret));
		if (!*ret)
			return PRB_NVML_NO_MEMORY;
		code = nvml->processes(gpu, count, *ret);
	}
	return code;
}
