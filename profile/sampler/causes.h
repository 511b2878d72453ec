/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The causes of sleeping threads' waits, for samples: the GIL and its holder, a lock and its
 * owner, a descriptor and its peer.
 *
 * Descriptions of the same call with the same arguments are kept for a second, since they are made
 * at a rate; the holder of the GIL or a lock is read each time.
 *
 * Threading: one thread at a time. Internal to profile/sampler/. Borrows the subjects.
 */
#ifndef PRB_PROFILE_SAMPLER_CAUSES_H
#define PRB_PROFILE_SAMPLER_CAUSES_H

#include "base/map.h"
#include "target/task.h"
#include "profile/sampler/subjects.h"

struct prb_cause_known {
	long call;
	uint64_t args[2];
	int64_t until;
	uint32_t wait;
};

struct prb_causes {
	struct prb_subjects *subjects;
	struct prb_wait_context *context; /**< NULL until it is needed */
	int64_t context_until;
	PRB_VEC(struct prb_cause_known) known;
	struct prb_number_map numbers; /**< of what is known, by a hash of the call */
};

void prb_causes_deinit(struct prb_causes *causes);

/** The innermost Python frame of a thread, and its interpreter. */
struct prb_cause_frame {
	struct prb_python *py; /**< NULL: there is none */
	struct prb_py_frame frame;
};

/**
 * The wait, a number of the recording, of a thread that sleeps in @p call. @p mem: its memory,
 * while it sleeps. @p holder: the state that holds the GIL which the thread may wait for, or 0.
 */
struct prb_error *prb_causes_find(struct prb_causes *causes, const struct prb_subject *subject,
				  const struct prb_task *call, struct prb_mem *mem,
				  const struct prb_cause_frame *frame, uint64_t holder,
				  uint32_t *ret) PRB_MUST_CHECK;

#endif
