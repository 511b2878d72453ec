/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/series.h"

#include "base/checked.h"
#include "base/text.h"
#include "judge/limits.h"

enum { LEAST_ROWS = 10 };

/* Seconds: so many are looked at. */
static const double MOST_SPAN = 900;

/* The last rows that belong together. */
static void cut(struct prb_memory_series *s)
{
	const struct prb_memory_row *last = s->rows + s->count - 1;

	while (s->count && s->rows->time < last->time - MOST_SPAN) {
		s->rows++;
		s->count--;
	}
}

bool prb_memory_rises(struct prb_memory_series *s, double least_span)
{
	double begin, all;

	if (s->count)
		cut(s);
	if (s->count < LEAST_ROWS)
		return false;
	begin = s->rows->time;
	all = s->rows[s->count - 1].time - begin;
	if (all < least_span)
		return false;
	for (unsigned i = 0; i < PRB_SERIES_PARTS; i++)
		s->least[i] = -1;
	for (size_t i = 0; i < s->count; i++) {
		unsigned part =
			all > 0 ? (unsigned)(PRB_SERIES_PARTS * (s->rows[i].time - begin) / all)
				: 0;
		double *least = &s->least[PRB_MIN(part, (unsigned)PRB_SERIES_PARTS - 1)];

		if (*least < 0 || s->rows[i].bytes < *least)
			*least = s->rows[i].bytes;
	}
	s->growth = s->least[PRB_SERIES_PARTS - 1] - s->least[0];
	s->span = all * (PRB_SERIES_PARTS - 1) / PRB_SERIES_PARTS;
	for (unsigned i = 1; i < PRB_SERIES_PARTS; i++)
		if (s->least[i - 1] < 0 ||
		    s->least[i] - s->least[i - 1] < s->growth / (4 * PRB_SERIES_PARTS))
			return false;
	return s->growth > 0 && s->growth / (1 << 20) * 60 >= prb_limit(PRB_LIMIT_LEAK) * s->span;
}

void prb_memory_series_put(struct prb_str *s, const struct prb_memory_series *series)
{
	prb_str_puts(s, "resident: ");
	for (unsigned i = 0; i < PRB_SERIES_PARTS; i++) {
		prb_str_puts(s, i ? " → " : "");
		prb_text_bytes(s, series->least[i]);
	}
}
