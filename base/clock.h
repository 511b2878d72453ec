/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The monotonic clock, for deadlines and measured times, the processor's time, and the
 * calendar. Any thread; never fails. */
#ifndef PRB_BASE_CLOCK_H
#define PRB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Nanoseconds of CLOCK_MONOTONIC. */
static inline int64_t prb_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** Nanoseconds that the calling thread has had a processor. */
static inline int64_t prb_clock_thread_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/** Seconds of CLOCK_MONOTONIC. */
static inline double prb_clock_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/** Nanoseconds since the epoch. */
static inline int64_t prb_clock_calendar_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** Seconds since the epoch. */
static inline double prb_clock_calendar_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
