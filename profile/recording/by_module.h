/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A recording by the modules of torch: its stacks become the part of the training step and
 * the modules that ran, so that every format and report shows these instead of functions.
 *
 * A frame belongs to a module if it is a method that runs one, and its subject is the module's
 * address (profile/sampler/codes.h). Backward, the optimizer, data loading and communication are
 * recognised by the files of torch that they are in.
 *
 * Threading: as recording.h. Of the threads only those remain that ran any of this.
 */
#ifndef PRB_PROFILE_RECORDING_BY_MODULE_H
#define PRB_PROFILE_RECORDING_BY_MODULE_H

#include "profile/recording/recording.h"

/** Parts of a training step; each stack begins with its part. */
enum prb_step_part {
	PRB_STEP_FORWARD,
	PRB_STEP_BACKWARD,
	PRB_STEP_OPTIMIZER,
	PRB_STEP_DATA,
	PRB_STEP_COMMUNICATION,
	PRB_STEP_OTHER,
	PRB_STEP_PARTS,
};

/** "forward", "backward", "optimizer", "data loading", "communication", "other". */
const char *prb_step_part_name(enum prb_step_part part);

struct prb_module_name {
	uint64_t address;
	const char *path;  /**< "model.layers.0" */
	const char *class; /**< "Block" */
};

struct prb_by_module {
	struct prb_recording
		*recording; /**< functions of modules have the subject and "path: class" */
	uint64_t steps;	    /**< how often the optimizer was seen to begin */
	int64_t unknown;    /**< wall time of `forward` methods of what is no known module */
};

/**
 * @p names are sorted by address. @p calls: what the innermost module called follows it.
 * PRB_ERROR_NOT_FOUND if nothing of torch ran.
 */
struct prb_error *prb_by_module(const struct prb_recording *recording,
				const struct prb_module_name *names, size_t count, bool calls,
				struct prb_by_module *ret) PRB_MUST_CHECK;

#endif
