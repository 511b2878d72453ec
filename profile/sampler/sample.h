/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Result of sampling one thread. Internal to profile/sampler/. */
#ifndef PRB_PROFILE_SAMPLER_SAMPLE_H
#define PRB_PROFILE_SAMPLER_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/tasks/tasks.h"
#include "profile/recording/recording.h"

struct prb_stack_sample {
	uint32_t stack;
	enum prb_run_state state;
	struct prb_task_times times;
	uint32_t wait; /**< what it waits for; 0 unless that is known */
	bool gil;      /**< it holds the GIL */
	bool unreadable;
	bool none;   /**< it ran, and was not read: this is no sample */
	bool gone;   /**< the thread has ended: this is no sample */
	bool held;   /**< it was stopped when the times were noted */
	bool asleep; /**< it is certain that it had no processor when the times were noted */
};

#endif
