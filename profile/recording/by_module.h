/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A recording by the modules of torch: its stacks become the part of the training step and
 * the modules that ran, so that every format and report shows these instead of functions.
 *
 * A frame belongs to a module if it is a method that runs one, and its subject is the module's
 * address (profile/sampler/codes.h). Each stack begins with its part of the step (step_parts.h).
 *
 * Threading: as recording.h. Of the threads only those remain that ran any of this.
 */
#ifndef PRB_PROFILE_RECORDING_BY_MODULE_H
#define PRB_PROFILE_RECORDING_BY_MODULE_H

#include "profile/recording/recording.h"
#include "profile/recording/step_parts.h"

struct prb_module_name {
	uint64_t address;
	const char *path;  /**< "model.layers.0" */
	const char *class; /**< "Block" */
};

struct prb_by_module {
	struct prb_recording
		*recording; /**< functions of modules have the subject and "path: class" */
	uint64_t steps;	    /**< how often an optimizer was seen to begin, of several the one
			       seen most often; there may have been more */
	int64_t unknown;    /**< wall time of `forward` methods of what is no known module */
};

/** What a stack by module has beside the part and the modules. */
struct prb_by_module_options {
	bool calls; /**< what the innermost module called follows it */
	bool nodes; /**< nodes of autograd, for a recording with native frames */
};

/** @p names are sorted by address. PRB_ERROR_NOT_FOUND if nothing of torch ran. */
struct prb_error *prb_by_module(const struct prb_recording *recording,
				const struct prb_module_name *names, size_t count,
				const struct prb_by_module_options *options,
				struct prb_by_module *ret) PRB_MUST_CHECK;

#endif
