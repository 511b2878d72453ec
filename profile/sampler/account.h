/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Adding samples of a thread to the runs of a recording, with what its counters say.
 *
 * Threading: one thread at a time. Internal to profile/sampler/.
 */
#ifndef PRB_PROFILE_SAMPLER_ACCOUNT_H
#define PRB_PROFILE_SAMPLER_ACCOUNT_H

#include "profile/recording/recording.h"
#include "profile/sampler/sample.h"
#include "profile/sampler/subjects.h"

/** A sample at @p now, with all that the counters have counted since the last one. */
struct prb_error *prb_account_sample(struct prb_recording *recording, struct prb_subject *subject,
				     const struct prb_stack_sample *sample,
				     int64_t now) PRB_MUST_CHECK;

/** @p samples samples, the last one at @p now, that found that the thread has not run since those
 * before. */
struct prb_error *prb_account_same(struct prb_recording *recording, struct prb_subject *subject,
				   uint32_t samples, int64_t now) PRB_MUST_CHECK;

/**
 * A sample at @p now that found that the thread has had no processor since it was resumed, at the
 * sample before or earlier: it waits for one, where it was.
 */
struct prb_error *prb_account_queued(struct prb_recording *recording, struct prb_subject *subject,
				     int64_t now) PRB_MUST_CHECK;

/**
 * The thread has ended: accounts its CPU time since its last sample, if the kernel still reports
 * it.
 */
void prb_account_last(const struct prb_tasks *tasks, struct prb_subject *subject,
		      const struct prb_task_watch *task);

/**
 * No more samples will come: what the thread used of a processor since it was seen on one belongs
 * to where that was; or, if it never was, to where it was seen. So does what it waited for one.
 */
struct prb_error *prb_account_rest(struct prb_recording *recording,
				   struct prb_subject *subject) PRB_MUST_CHECK;

/** Keeps the first @p runs runs only: the others are written, and threads begin new ones. */
void prb_account_cut(struct prb_recording *recording, struct prb_subjects *subjects, size_t runs);

/** As above, for runs that are worth nothing: threads in them were never seen there, and what was
 * counted at @p since or later is not counted yet. */
void prb_account_undo(struct prb_recording *recording, struct prb_subjects *subjects, size_t runs,
		      int64_t since);

#endif
