/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stands for the driver's libnvidia-ml.so.1 on machines without one: two GPUs, of which the second
 * is lost. Structs and codes are those of NVIDIA's library.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SUCCESS, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, NOT_LOADED = 9, LOST = 15 };

struct memory {
	unsigned long long total, free, used;
};

struct rates {
	unsigned gpu, memory;
};

struct pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};

struct sample {
	unsigned long long time;
	unsigned long long value;
};

struct process {
	unsigned pid;
	unsigned long long memory;
	unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2(void)
{
	return getenv("NO_DRIVER") ? NOT_LOADED : SUCCESS;
}

int nvmlShutdown(void)
{
	return SUCCESS;
}

const char *nvmlErrorString(int code)
{
	return code == NOT_SUPPORTED ? "Not Supported"
	       : code == NOT_LOADED  ? "Driver Not Loaded"
	       : code == LOST	     ? "GPU is lost"
				     : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
	snprintf(text, size, "550.54.15");
	return SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	*version = 12040;
	return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = 2;
	return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	static int first;

	*device = &first;
	return index ? LOST : SUCCESS;
}

int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
	(void)device;
	snprintf(text, size, "NVIDIA H200");
	return SUCCESS;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
	(void)device;
	snprintf(text, size, "GPU-0");
	return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
	(void)device;
	snprintf(pci->text, sizeof(pci->text), "00000000:3B:00.0");
	return SUCCESS;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned *number)
{
	(void)device;
	*number = 0;
	return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
	(void)device;
	*major = 9;
	*minor = 0;
	return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
	(void)device;
	memory->total = 150754820096ULL;
	memory->used = 50754820096ULL;
	memory->free = 100000000000ULL;
	return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, struct rates *rates)
{
	(void)device;
	rates->gpu = getenv("GPU_SPINS") ? 100 : 87;
	rates->memory = getenv("GPU_SPINS") ? 0 : 45;
	return SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees)
{
	(void)device;
	*degrees = 61;
	return sensor ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
	(void)device;
	*milliwatts = getenv("GPU_SPINS") ? 121000 : 512345;
	return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
	(void)device;
	*milliwatts = 700000;
	return SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz)
{
	(void)device;
	*mhz = 1980;
	return kind == 1 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetSamples(void *device, int kind, unsigned long long after, int *type,
			 unsigned *count, struct sample *list)
{
	unsigned long long now = (unsigned long long)time(NULL) * 1000000;

	(void)device, (void)after;
	*type = 1;
	*count = 4;
	if (kind != 1 && kind != 2)
		return NOT_SUPPORTED;
	/* The last place was never filled; only the low half of a value is one. */
	for (int i = 0; list && i < 3; i++)
		list[i] = (struct sample){now - 3000000 + (unsigned)i * 1000000,
					  0xdead00000000 + (unsigned)(kind * 10 + i)};
	return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list)
{
	const char *pid = getenv("GPU_PID"), *others = getenv("GPU_OTHERS");
	unsigned first = others ? (unsigned)atoi(others) : 0, room = *count;

	(void)device;
	*count = first + 2;
	if (room < *count)
		return INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < first; i++)
		list[i] = (struct process){.pid = 10000 + i, .memory = 1};
	list[first] =
		(struct process){.pid = pid ? (unsigned)atoi(pid) : 4242, .memory = 50000000000ULL};
	list[first + 1] = (struct process){.pid = 4243, .memory = ~0ULL};
	return SUCCESS;
}
