/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file When samples are taken: at random times, so that no program can dance in step with them.
 *
 * The gaps between the times are drawn from an exponential distribution, and capped. The times
 * themselves are fixed in advance: a sample that comes late does not move those after it.
 *
 * Threading: one thread at a time. Times are nanoseconds of any one clock.
 */
#ifndef PRB_PROFILE_SAMPLER_SCHEDULE_H
#define PRB_PROFILE_SAMPLER_SCHEDULE_H

#include <stdint.h>

/** No gap is longer than so many mean ones. */
enum { PRB_SCHEDULE_CAP = 8 };

struct prb_schedule {
	uint64_t key[2], drawn; /**< of the generator, and how many numbers it gave */
	double mean;
	int64_t next;
};

/** From @p now on, @p rate times a second on average; the same @p key gives the same gaps. */
void prb_schedule_begin(struct prb_schedule *schedule, const uint64_t key[2], double rate,
			int64_t now);

/** The next time that is not before @p now; *missed grows by the times that have passed unused. */
int64_t prb_schedule_next(struct prb_schedule *schedule, int64_t now, uint64_t *missed);

#endif
