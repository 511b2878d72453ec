/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Samples with the asyncio task that the thread runs, and the tasks that wait for it.
 *
 * The stack of such a sample has, between the event loop's frames and the running task's, the tasks
 * that wait, outermost first: for each a frame of the kind PRB_FUNCTION_TASK, and the chain of its
 * awaits; and such a frame of the running task itself. tasks_view.h makes the two views of that:
 * the stack as it was, or the tasks in place of the event loop.
 *
 * Threading: one thread at a time. Internal to profile/sampler/. Borrows the target, its modules
 * and the subjects' runtimes.
 */
#ifndef PRB_PROFILE_SAMPLER_AWAITS_H
#define PRB_PROFILE_SAMPLER_AWAITS_H

#include "base/error.h"
#include "profile/sampler/codes.h"
#include "profile/sampler/subjects.h"

struct prb_awaits;

struct prb_error *prb_awaits_create(struct prb_subjects *subjects,
				    struct prb_awaits **ret) PRB_MUST_CHECK;
void prb_awaits_destroy(struct prb_awaits *awaits);

/** Once a second or so, while nothing is stopped. */
struct prb_error *prb_awaits_refresh(struct prb_awaits *awaits, int64_t now) PRB_MUST_CHECK;

/**
 * Notes what a thread awaits, after its own frames were noted, whose memory does not change, or is
 * proven later not to have.
 */
struct prb_error *prb_awaits_note(struct prb_awaits *awaits, struct prb_codes *codes,
				  struct prb_mem *mem,
				  const struct prb_subject *subject) PRB_MUST_CHECK;

/** Adds what was noted to a stack of the thread. */
struct prb_error *prb_awaits_insert(struct prb_awaits *awaits, struct prb_codes *codes,
				    uint32_t *stack) PRB_MUST_CHECK;

#endif
