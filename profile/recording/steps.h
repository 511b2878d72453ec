/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs put together by steps of time: all that a thread did within a step with the same
 * stack, in the same state and for the same wait, is one run. Sums stay exact; the order of what a
 * thread did within a step is lost.
 *
 * Threading: one thread at a time. Internal to profile/. Begins as {}.
 */
#ifndef PRB_PROFILE_RECORDING_STEPS_H
#define PRB_PROFILE_RECORDING_STEPS_H

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/recording/recording.h"

typedef PRB_VEC(struct prb_run) prb_run_list;

struct prb_steps {
	prb_run_list runs;
	int64_t step; /**< ns; 0: runs stay as they are */
	int64_t most; /**< so many steps, what is later belongs to the last; 0: any */
	struct prb_number_map numbers; /**< of runs, by a hash of their identity */
};

/** Adds a run, which may become part of another one. */
struct prb_error *prb_steps_add(struct prb_steps *steps, const struct prb_run *run) PRB_MUST_CHECK;
/** Puts the runs together anew, with longer steps. */
struct prb_error *prb_steps_lengthen(struct prb_steps *steps, int64_t step) PRB_MUST_CHECK;
/** Forgets the runs. */
void prb_steps_clear(struct prb_steps *steps);

/** Orders runs by thread and begin. */
void prb_runs_sort(struct prb_run *runs, size_t count);
/** As above; overlapping runs are moved after each other. */
void prb_runs_straighten(struct prb_run *runs, size_t count);

#endif
