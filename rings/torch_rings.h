/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The training steps and module calls that the agent has written (agent/torch/torch.h), as
 * read from the rings of a target.
 *
 * Threading: one thread at a time per target. Ownership: texts belong to the result. Rows are as
 * little to be trusted as the process that wrote them; numbers that make no sense are left out.
 */
#ifndef PRB_RINGS_TORCH_RINGS_H
#define PRB_RINGS_TORCH_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/vec.h"
#include "target/target.h"

struct prb_torch_step_row {
	int64_t step, local; /**< numbers: of the job, and since recording began */
	char kind;	     /**< 's'ampled, 'd'iscovery, 'u'nsampled */
	int64_t micro, calls;
	/** Milliseconds; NaN: not known. */
	double duration, data, forward, evaluation, backward, optimizer, communication;
	double own;    /**< microseconds */
	int64_t ended; /**< ns since the epoch */
	bool cut;      /**< the ring has dropped some of its calls, or all */
};

enum prb_torch_call_stage {
	PRB_TORCH_CALL_FORWARD,
	PRB_TORCH_CALL_RECOMPUTE,
	PRB_TORCH_CALL_BACKWARD,
	PRB_TORCH_CALL_OPTIMIZER,
	PRB_TORCH_CALL_DATA,
	PRB_TORCH_CALL_EVALUATION, /**< forward without gradients */
	PRB_TORCH_CALL_STAGES,
};

struct prb_torch_call_row {
	int64_t local; /**< number of its step since recording began */
	int64_t seq, parent;
	enum prb_torch_call_stage stage;
	const char *module, *class; /**< class NULL: it is no module */
	double duration, offset;    /**< milliseconds; offset since the step began */
	double memory; /**< bytes that it has allocated; NaN: not known, or not the GPU's */
	uint32_t tid;
};

/** How long the GPU was at a call, or at a step: stage PRB_TORCH_CALL_STAGES. */
struct prb_torch_gpu_row {
	int64_t local, seq;
	enum prb_torch_call_stage stage;
	double duration; /**< milliseconds */
};

struct prb_torch_rings {
	PRB_VEC(struct prb_torch_step_row) steps; /**< as they ended */
	PRB_VEC(struct prb_torch_call_row) calls; /**< as they ended */
	PRB_VEC(struct prb_torch_gpu_row) gpu;	  /**< by local, seq and stage */
	int64_t first_call; /**< local number of the step that the oldest call in the ring is of */
	struct prb_pool *pool;
	bool found; /**< the process has such rings */
};

/** So many of each kind are read, the oldest ones: what is stored may be of days. */
enum { PRB_TORCH_MOST_ROWS = 4000000 };

/**
 * Reads the rows of @p target that were written since @p since, nanoseconds since the epoch. *ret
 * is to be ended also after an error.
 */
struct prb_error *prb_torch_rings_read(struct prb_target *target, int64_t since,
				       struct prb_torch_rings *ret) PRB_MUST_CHECK;
/** Milliseconds that the GPU was at a call; NaN: not known. */
double prb_torch_rings_gpu(const struct prb_torch_rings *rings, int64_t local, int64_t seq,
			   enum prb_torch_call_stage stage);
void prb_torch_rings_deinit(struct prb_torch_rings *rings);

#endif
