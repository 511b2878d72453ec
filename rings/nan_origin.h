/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Since when the loss of a training is no finite number, and the first module whose output
 * was none: rows of python.torch_nan, which the agent writes with probing.torch.nan=on.
 *
 * Threading: as the target's. Rows are as little to be trusted as the process that wrote them.
 */
#ifndef PRB_RINGS_NAN_ORIGIN_H
#define PRB_RINGS_NAN_ORIGIN_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "target/target.h"

/** Names are cut. */
struct prb_nan_origin {
	int64_t loss_step; /**< the first step of those whose loss is no number, up to now */
	double steps;	   /**< how many have ended since; 0: it is a number, or nothing is known */
	int64_t step;	   /**< of the first module with such an output since then; -1: none */
	char module[256], class[128];
	int64_t nan, infinite, elements; /**< of its output */
	int64_t inputs;			 /**< so many of its inputs have NaN or infinity */
	char parameters[128];		 /**< those that have; empty: none */
};

/** Rings that cannot be read are left out. */
struct prb_error *prb_nan_origin_find(struct prb_target *target,
				      struct prb_nan_origin *ret) PRB_MUST_CHECK;

/** "the loss is NaN since step 15003; the first module with a NaN in its output was `layers.7`". */
void prb_nan_origin_text(const struct prb_nan_origin *origin, struct prb_str *s);
/** "at step 15003, 3 of 64 elements of its output; its inputs and parameters were finite". */
void prb_nan_origin_evidence(const struct prb_nan_origin *origin, struct prb_str *s);

#endif
