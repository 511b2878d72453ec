/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory that grows from look to look, without an end in sight. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/overview/overview.h"
#include "judge/limits.h"

/* Points that a time is judged by, and the parts of it, each of which has to have more. */
enum { POINTS = 24, PARTS = 4 };

static const double MB = 1e6, MINUTE = 60;

/** Has no find(): it is asked about several looks, not about a process as it is now. */
static const struct prb_rule RULE = {
	.rank = 82,
	.name = "grows",
	.kind = PRB_FINDING_LEAK,
	.proves = "memory grows from look to look",
};

void prb_overview_trend_note(struct prb_overview_row *row, double now)
{
	__typeof__(row->trend) *trend = &row->trend;
	double span = prb_limit(PRB_LIMIT_GROWS_FOR);
	size_t old = 0;

	if (trend->count && now < trend->items[trend->count - 1].at + span / POINTS)
		return;
	struct prb_overview_point *place = prb_vec_push(trend);

	if (place)
		*place = (struct prb_overview_point){now, row->pulse.rss};
	while (old < trend->count && trend->items[old].at < now - 2 * span)
		old++;
	for (size_t i = old; i < trend->count; i++)
		trend->items[i - old] = trend->items[i];
	trend->count -= old;
}

/** The mean of a part of the points. */
static double mean(const struct prb_overview_row *row, size_t part)
{
	size_t first = part * row->trend.count / PARTS, end = (part + 1) * row->trend.count / PARTS;
	double sum = 0;

	for (size_t i = first; i < end; i++)
		sum += (double)row->trend.items[i].rss;
	return sum / (double)(end - first);
}

struct prb_error *prb_overview_trend_find(struct prb_overview_row *row)
{
	size_t count = row->trend.count;
	struct prb_finding *f;

	if (count < (size_t)PARTS * 2)
		return NULL;
	double span = row->trend.items[count - 1].at - row->trend.items[0].at;

	if (span < prb_limit(PRB_LIMIT_GROWS_FOR) || span <= 0)
		return NULL;
	for (size_t part = 1; part < PARTS; part++)
		if (mean(row, part) <= mean(row, part - 1))
			return NULL;
	/* The middles of the first and the last part are so far from each other. */
	double rate = (mean(row, PARTS - 1) - mean(row, 0)) / (span * (PARTS - 1) / PARTS) * MINUTE;

	if (rate < prb_limit(PRB_LIMIT_GROWS) * MB)
		return NULL;
	PRB_TRY(prb_finding_add(&RULE, &row->findings, &f));
	f->confidence = PRB_CONFIDENCE_LOW;
	f->lasted = span;
	prb_str_puts(&f->brief, "grows ");
	prb_text_bytes(&f->brief, rate);
	prb_str_puts(&f->brief, " a minute");
	prb_str_printf(&f->sentence, "memory %s, for ", prb_str_text(&f->brief));
	prb_text_duration(&f->sentence, span);
	prb_str_puts(&f->sentence, " so far");
	prb_str_printf(&f->rests_on, "%zu readings of its memory in RAM", count);
	prb_str_puts(&f->wrong_if, "it fills a cache or loads data, and ends with that");
	prb_str_printf(&f->next, "probing -t %s memory --growth 10s", row->words);
	return NULL;
}
