/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Self and total time of each function of a recording.
 *
 * Threading: one thread at a time. A report owns its rows and borrows nothing.
 */
#ifndef PRB_PROFILE_RECORDING_REPORT_H
#define PRB_PROFILE_RECORDING_REPORT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"
#include "profile/recording/recording.h"

/** Units of the weight of samples. */
enum prb_weight {
	PRB_WEIGHT_CPU,	     /**< time on a processor */
	PRB_WEIGHT_WALL,     /**< time that passed, of each thread */
	PRB_WEIGHT_RUNQUEUE, /**< time that threads could run in, and had no processor */
	PRB_WEIGHT_GIL,	     /**< time that passed while threads held the GIL */
	PRB_WEIGHT_BLOCKED,  /**< time that threads slept in, for anything but the GIL */
	PRB_WEIGHTS,
};

/** How a weight is called by `--mode`, in a sentence behind a duration, and where there is none. */
struct prb_weight_words {
	const char *mode, *what, *none;
};
extern const struct prb_weight_words prb_weight_words[PRB_WEIGHTS];

/** NULL is the first. An error names them all. */
struct prb_error *prb_weight_parse(const char *mode, enum prb_weight *ret) PRB_MUST_CHECK;

/** Which part of a recording is looked at, and how. */
struct prb_profile_choice {
	enum prb_weight weight;
	bool lines;	     /**< each line of a function by itself */
	const bool *threads; /**< which threads, by number; NULL: all */
};

/** The weight of a run; 0 if it is not chosen. */
int64_t prb_run_weight(const struct prb_run *run, const struct prb_profile_choice *choice);

/** A part of a whole, and between which bounds it is with a probability of 95 %. */
struct prb_share {
	double share, low, high; /**< 0 to 1 */
};

/** Of @p samples equal ones (Wilson's interval). */
struct prb_share prb_share_of(double part, double whole, double samples);

struct prb_report_row {
	uint32_t function; /**< in the tree of the recording */
	int32_t line;	   /**< of the function, if lines were asked for; else 0 */
	int64_t self, total;
	uint64_t samples; /**< in which it was the innermost */
};

struct prb_report {
	PRB_VEC(struct prb_report_row) rows; /**< by `self`, then `total`, the largest first */
	int64_t weight;			     /**< of all */
	double samples; /**< the number of independent samples of equal weight with the same
			   precision */
	uint64_t taken; /**< samples that weigh anything */
	int64_t states[PRB_RUN_STATES]; /**< the weight by what threads did meanwhile */
};

struct prb_error *prb_report_make(const struct prb_recording *recording,
				  const struct prb_profile_choice *choice,
				  struct prb_report *ret) PRB_MUST_CHECK;
void prb_report_deinit(struct prb_report *report);

/** Percent of the samples that weigh anything that could not be read, as another tracer had the
 * thread. */
double prb_report_traced(const struct prb_recording *recording,
			 const struct prb_profile_choice *choice);

/** Share of a weight of the report, with its bounds. */
struct prb_share prb_report_share(const struct prb_report *report, int64_t weight);

#endif
