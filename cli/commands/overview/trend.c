/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Notes the memory at each look, by which the rule `leak` judges whether it grows. */
#include "base/checked.h"
#include "cli/commands/overview/overview.h"
#include "judge/limits.h"

enum { POINTS = 24 }; /* that a time is judged by */

void prb_overview_trend_note(struct prb_overview_row *row, double now)
{
	__typeof__(row->trend) *trend = &row->trend;
	double span = prb_limit(PRB_LIMIT_LEAK_FOR);
	size_t old = 0;

	if (trend->count && now < trend->items[trend->count - 1].time + span / POINTS)
		return;
	struct prb_memory_row *place = prb_vec_push(trend);

	if (place)
		*place = (struct prb_memory_row){now, (double)row->pulse.rss, -1};
	while (old < trend->count && trend->items[old].time < now - 2 * span)
		old++;
	for (size_t i = old; i < trend->count; i++)
		trend->items[i - old] = trend->items[i];
	trend->count -= old;
}
