/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which threads of a process need not be looked at for a sample.
 *
 * The clock of a process is the CPU time of all its threads, ended ones too, as in their
 * `schedstat`; it takes one system call. As long as it equals the known sum, no thread that slept
 * has used a processor since then.
 *
 * CPU time is added at a tick, and when the thread loses the processor. So the clock does not show
 * a thread that was woken just now, while the thread's own counters do. Therefore a thread that has
 * run is watched for some time: its own counters are looked at for each sample. That time is
 * proportional to how long it ran, so that a thread that uses more than one part in 5,000 of a
 * processor is always watched.
 *
 * Threading: one thread at a time. Internal to profile/sampler/. Borrows the subjects.
 */
#ifndef PRB_PROFILE_SAMPLER_QUIET_H
#define PRB_PROFILE_SAMPLER_QUIET_H

#include <time.h>

#include "base/error.h"
#include "base/vec.h"
#include "profile/sampler/subjects.h"

struct prb_quiet {
	struct prb_subjects *subjects;
	clockid_t clock;	 /**< of the process, */
	int64_t now;		 /**< and what it showed at the last look */
	PRB_VEC(size_t) watched; /**< indexes of subjects */
	int64_t others;		 /**< what all other subjects have used */
	uint32_t rounds;	 /**< samples of the others that are not in the recording yet, */
	int64_t at;		 /**< and the time of the last one */

	/**
	 * CPU time of threads outside the list is between these, and constant as long as the list
	 * is unchanged.
	 */
	int64_t rest_least, rest_most;
	uint64_t changes; /**< of the list, when that was found out */
	int64_t begin;	  /**< what the clock has more than the watched ones, before a sample */
};

/** Knows of no subject yet: prb_quiet_sort(). The result is to be ended always. */
void prb_quiet_begin(struct prb_quiet *quiet, struct prb_subjects *subjects, clockid_t clock);
void prb_quiet_end(struct prb_quiet *quiet);

/**
 * For a sample: looks at the watched ones, and notes which are `unmoved`. True if
 * none of the others has used a processor.
 */
bool prb_quiet_look(struct prb_quiet *quiet);

/** After a sample at @p now of the threads that prb_quiet_look() selected. */
struct prb_error *prb_quiet_sampled(struct prb_quiet *quiet, bool others_slept,
				    int64_t now) PRB_MUST_CHECK;

/** The subject has used @p ran at the sample at @p now. */
void prb_quiet_watch(struct prb_subject *subject, int64_t ran, int64_t now);

/** Selects the watched threads anew: the list, or the knowledge of the subjects, has changed. */
struct prb_error *prb_quiet_sort(struct prb_quiet *quiet, int64_t now) PRB_MUST_CHECK;

/** Adds to the recording what samples found of others than the watched ones. To be called before
 * those are touched otherwise, and before the recording is read. */
struct prb_error *prb_quiet_settle(struct prb_quiet *quiet) PRB_MUST_CHECK;

#endif
