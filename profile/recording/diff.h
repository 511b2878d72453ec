/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What two recordings say of each function: its share of the run before and after.
 *
 * A change counts as certain if it is larger than what chance explains. Chance is both that samples
 * are few and that a program does not do the same all the time: how much a function's share varies
 * between parts of each recording tells how many independent samples the recording is worth. As
 * many functions are compared at once, the bound is Holm's: if nothing has changed, no function is
 * called certain with a probability of 95 %.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_PROFILE_RECORDING_DIFF_H
#define PRB_PROFILE_RECORDING_DIFF_H

#include "profile/recording/recording.h"
#include "profile/recording/report.h"

struct prb_change {
	double before, after; /**< shares of the run, 0 to 1 */
	double low, high;     /**< bounds of the difference, with a probability of 95 % */
	double chance;	      /**< how probable such a difference is if nothing has changed */
	bool certain;
	double worth; /**< how many samples are worth one independent sample */
};

struct prb_diff_row {
	uint32_t function; /**< in the tree of the recording */
	int32_t line;	   /**< the line in `after`, if lines were requested; else 0 */
	struct prb_report_row before, after;
	struct prb_change self, total;
};

struct prb_diff {
	PRB_VEC(struct prb_diff_row) rows; /**< the largest changes of `self` first */
	struct prb_report before, after;   /**< of each recording */
};

/**
 * @p joined is made by prb_recording_join() of recordings with their runs in order; the threads of
 * @p choice are its threads.
 */
struct prb_error *prb_diff_make(const struct prb_recording *joined,
				const struct prb_profile_choice *choice,
				struct prb_diff *ret) PRB_MUST_CHECK;
void prb_diff_deinit(struct prb_diff *diff);

#endif
