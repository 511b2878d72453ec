/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What a GPU did in the steps of a trace that was joined (trace.h), and what it waited for.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_PROFILE_KINETO_GPU_H
#define PRB_PROFILE_KINETO_GPU_H

#include "base/str.h"
#include "profile/kineto/trace.h"

/** Nanoseconds; those without a kernel that computes are idle. */
struct prb_kineto_gpu {
	int64_t device;
	int64_t total;		/**< of the steps */
	int64_t computes;	/**< kernels run that are no collectives */
	int64_t collectives;	/**< these run */
	int64_t overlap;	/**< both do */
	int64_t for_collective; /**< idle while a collective runs */
	int64_t for_copy;	/**< while only memory is copied or set */
	int64_t for_host;	/**< nothing runs, and the next kernel was not launched yet */
	int64_t for_other; /**< nothing runs though one is launched: it waits for another stream */
};

struct prb_kineto_gpus {
	PRB_VEC(struct prb_kineto_gpu) list; /**< by device */
};

/** *ret is to be ended also after an error. */
struct prb_error *prb_kineto_gpus(const struct prb_kineto *trace,
				  struct prb_kineto_gpus *ret) PRB_MUST_CHECK;
/**
 * Appends in lines why the GPU is idle, with the evidence and what would refute it; nothing if it
 * is idle for little of the time.
 */
void prb_kineto_gpu_verdict(const struct prb_kineto_gpu *gpu, struct prb_str *s);
void prb_kineto_gpus_deinit(struct prb_kineto_gpus *gpus);

#endif
