/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/schedule.h"

#include <math.h>

#include "base/siphash.h"

void prb_schedule_begin(struct prb_schedule *schedule, const uint64_t key[2], double rate,
			int64_t now)
{
	*schedule = (struct prb_schedule){
		.key = {key[0], key[1]},
		.mean = 1e9 / rate,
		.next = now,
	};
}

/* A keyed hash of a counter is as good as random here, and repeatable. */
static int64_t draw_gap(struct prb_schedule *schedule)
{
	uint64_t bits = prb_siphash(1, 3, schedule->key, &schedule->drawn, sizeof(uint64_t));
	double uniform = ((double)(bits >> 11) + 1) * 0x1p-53; /* in (0, 1] */

	schedule->drawn++;
	return (int64_t)(schedule->mean * fmin(-log(uniform), PRB_SCHEDULE_CAP));
}

int64_t prb_schedule_next(struct prb_schedule *schedule, int64_t now, uint64_t *missed)
{
	schedule->next += draw_gap(schedule);
	while (schedule->next < now) {
		++*missed;
		schedule->next += draw_gap(schedule);
	}
	return schedule->next;
}
