/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The monotonic clock, for deadlines and measured times, the processor's time, and the
 * calendar. Any thread; never fails. */
#ifndef PRB_BASE_CLOCK_H
#define PRB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Nanoseconds of a clock of the kernel. */
static inline int64_t prb_clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** Seconds of a clock of the kernel. */
static inline double prb_clock_read_seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/** Nanoseconds of CLOCK_MONOTONIC. */
static inline int64_t prb_clock_ns(void)
{
	return prb_clock_read_ns(CLOCK_MONOTONIC);
}

/** Nanoseconds that the calling thread has had a processor. */
static inline int64_t prb_clock_thread_ns(void)
{
	return prb_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/** Seconds of CLOCK_MONOTONIC. */
static inline double prb_clock_seconds(void)
{
	return prb_clock_read_seconds(CLOCK_MONOTONIC);
}

/** Nanoseconds since the epoch. */
static inline int64_t prb_clock_calendar_ns(void)
{
	return prb_clock_read_ns(CLOCK_REALTIME);
}

/** Seconds since the epoch. */
static inline double prb_clock_calendar_seconds(void)
{
	return prb_clock_read_seconds(CLOCK_REALTIME);
}

#endif
