/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Memory over time: whether it grows evenly and all the time. What is only filled once does
 * not look like that.
 *
 * Threading: any thread.
 */
#ifndef PRB_JUDGE_SERIES_H
#define PRB_JUDGE_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "rings/memory_rows.h"

enum { PRB_SERIES_PARTS = 5 };

struct prb_memory_series {
	const struct prb_memory_row *rows; /**< borrowed, in the order of their times */
	size_t count;
	double to_calendar; /**< seconds that make of a row's time one since the epoch; 0: it is */
	/** Set by prb_memory_rises(): bytes, the least in each part of the time. */
	double least[PRB_SERIES_PARTS];
	double growth, span; /**< bytes and seconds, from the first part's least to the last's */
};

/**
 * True if each part of the time, of @p least_span seconds or more, has more than the one before,
 * after what was freed in it, too; and if the growth is that of PRB_LIMIT_LEAK. Of the rows, only
 * the last quarter of an hour is kept.
 */
bool prb_memory_rises(struct prb_memory_series *series, double least_span);

/** Appends "resident: 40.0 MB → 52.1 MB → …", the least in each part of a series that rises. */
void prb_memory_series_put(struct prb_str *s, const struct prb_memory_series *series);

#endif
