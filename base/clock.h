/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The monotonic clock, for deadlines and measured times. Any thread; never fails. */
#ifndef PRB_BASE_CLOCK_H
#define PRB_BASE_CLOCK_H

#include <time.h>

/** Seconds of CLOCK_MONOTONIC. */
static inline double prb_clock_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
