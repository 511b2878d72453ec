/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file NVIDIA's management library, as far as we need it. It comes with the driver and is
 * loaded when GPUs are asked for; nothing of it is needed to build.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_TARGET_GPU_NVML_H
#define PRB_TARGET_GPU_NVML_H

#include <stdbool.h>

#include "base/str.h"

struct prb_nvml_memory {
	unsigned long long total, free, used; /* bytes */
};

/** The same of newer drivers, where `used` excludes the driver's own memory. */
struct prb_nvml_memory_v2 {
	unsigned version; /* PRB_NVML_MEMORY_V2 */
	unsigned long long total, reserved, free, used;
};

struct prb_nvml_rates {
	unsigned gpu, memory; /* % */
};

struct prb_nvml_pci {
	char legacy_id[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char id[32];
};

struct prb_nvml_process {
	unsigned pid;
	unsigned long long memory; /* bytes; all ones if unknown */
	unsigned gpu_instance, compute_instance;
};

/** The type of a sample's value. */
enum prb_nvml_value_type {
	PRB_NVML_DOUBLE,
	PRB_NVML_UNSIGNED,
	PRB_NVML_UNSIGNED_LONG,
	PRB_NVML_UNSIGNED_LONG_LONG,
	PRB_NVML_LONG_LONG,
};

union prb_nvml_value {
	double real;
	unsigned number32;
	long long number64;
};

/** A value that the driver has kept. */
struct prb_nvml_sample {
	unsigned long long time; /* µs since the epoch */
	union prb_nvml_value value;
};

enum {
	PRB_NVML_SUCCESS = 0,
	PRB_NVML_FUNCTION_NOT_FOUND = 13,
	PRB_NVML_INSUFFICIENT_SIZE = 7,
	PRB_NVML_NO_MEMORY = 20,
	PRB_NVML_CLOCK_SM = 1,
	PRB_NVML_CLOCK_MEMORY = 2,
	PRB_NVML_GPU_SAMPLES = 1,
	PRB_NVML_MEMORY_SAMPLES = 2,
	PRB_NVML_NAME_SIZE = 96,
	PRB_NVML_MEMORY_V2 = sizeof(struct prb_nvml_memory_v2) | 2 << 24,
};

/** A GPU; the library's own. */
typedef struct prb_nvml_device *prb_nvml_gpu;

/** The library's functions; missing ones are NULL. */
struct prb_nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error)(int code);
	int (*driver_version)(char *text, unsigned size);
	int (*cuda_version)(int *version);
	int (*count)(unsigned *count);
	int (*device)(unsigned index, prb_nvml_gpu *gpu);
	int (*name)(prb_nvml_gpu gpu, char *text, unsigned size);
	int (*uuid)(prb_nvml_gpu gpu, char *text, unsigned size);
	int (*pci)(prb_nvml_gpu gpu, struct prb_nvml_pci *pci);
	int (*minor)(prb_nvml_gpu gpu, unsigned *number);
	int (*capability)(prb_nvml_gpu gpu, int *major, int *minor);
	int (*memory_v1)(prb_nvml_gpu gpu, struct prb_nvml_memory *memory);
	int (*memory_v2)(prb_nvml_gpu gpu, struct prb_nvml_memory_v2 *memory);
	int (*rates)(prb_nvml_gpu gpu, struct prb_nvml_rates *rates);
	int (*temperature)(prb_nvml_gpu gpu, int sensor, unsigned *degrees);
	int (*power)(prb_nvml_gpu gpu, unsigned *milliwatts);
	int (*power_limit)(prb_nvml_gpu gpu, unsigned *milliwatts);
	int (*clock)(prb_nvml_gpu gpu, int kind, unsigned *mhz);
	int (*samples)(prb_nvml_gpu gpu, int kind, unsigned long long after, int *type,
		       unsigned *count, struct prb_nvml_sample *list);
	int (*processes)(prb_nvml_gpu gpu, unsigned *count, struct prb_nvml_process *list);
};

/** Loads and starts the library. False, with the reason in @p why, if there are no GPUs to see. */
bool prb_nvml_open(struct prb_nvml *ret, struct prb_str *why);
void prb_nvml_close(struct prb_nvml *nvml);

/** The used memory of a GPU, as nvidia-smi counts; returns the driver's code. */
int prb_nvml_memory(const struct prb_nvml *nvml, prb_nvml_gpu gpu, struct prb_nvml_memory *ret);

/**
 * The processes that compute on a GPU: @p ret is the caller's, also if it fails. The code of the
 * driver; PRB_NVML_INSUFFICIENT_SIZE if there are more than are looked at, with their number.
 */
int prb_nvml_processes(const struct prb_nvml *nvml, prb_nvml_gpu gpu, struct prb_nvml_process **ret,
		       unsigned *count);

/** What the driver says of a code. Static. */
const char *prb_nvml_reason(const struct prb_nvml *nvml, int code);

/** True if a call succeeded; else notes in @p reasons that @p what is missing, and why. */
bool prb_nvml_ok(const struct prb_nvml *nvml, int code, const char *what, struct prb_str *reasons);

#endif
