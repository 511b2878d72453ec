/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which functions had the GIL at the last looks of a caller that looks often. Its looks are
 * kept, and no others are made.
 *
 * Threading: none of its own.
 */
#ifndef PRB_JUDGE_GIL_H
#define PRB_JUDGE_GIL_H

#include "judge/judge.h"

/** Of the looks that are kept. */
struct prb_gil_share {
	unsigned looks, held; /**< how many; in how many the function held it, and others waited */
	double seconds;	      /**< from the first to the last */
	pid_t tid;	      /**< thread that held it in the last of these */
	const char *place;    /**< "`spin` hog.py", escaped; the history's. NULL: none */
};

/**
 * Notes a look at the case at the time @p now (monotonic); once for each time. @p dump: NULL if no
 * thread has run since the look before. Its frames may be cut.
 */
struct prb_error *prb_case_note_gil(struct prb_case *c, const struct prb_dump *dump,
				    double now) PRB_MUST_CHECK;

/**
 * The innermost function of the program that has held the GIL in at least @p least (0 to 1) of the
 * looks, itself or by what it called, while another thread waited for it.
 */
struct prb_gil_share prb_case_gil_share(const struct prb_case *c, double least);

/** NULL is allowed. */
void prb_gil_history_destroy(struct prb_gil_history *history);

#endif
