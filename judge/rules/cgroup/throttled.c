/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control group has used up its share of the processors, and waits for the next period. */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"

struct periods {
	int64_t all, throttled;
};

static bool read_periods(struct prb_case *c, struct periods *ret)
{
	prb_auto_str struct prb_str text = {};

	if (!prb_case_group(c, "cpu", "cpu.stat", "cpu.stat", &text))
		return false;
	ret->all = prb_group_number(prb_str_text(&text), "nr_periods");
	ret->throttled = prb_group_number(prb_str_text(&text), "nr_throttled");
	return ret->all > 0 && ret->throttled > 0;
}

static void put_quota(struct prb_case *c, struct prb_str *s)
{
	prb_auto_str struct prb_str text = {};

	if (!prb_case_group(c, "cpu", "cpu.max", "cpu.cfs_quota_us", &text))
		return;
	prb_str_puts(s, "; quota in µs: ");
	prb_str_append(s, prb_str_text(&text), strcspn(prb_str_text(&text), "\n"));
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	struct periods before, after;
	struct prb_finding *f;
	struct prb_str *line;

	/* The counters never fall: only their growth between two readings counts. */
	if (c->patience <= 0 || !read_periods(c, &before))
		return NULL;
	const double began = prb_clock_seconds();

	nanosleep(&(struct timespec){.tv_nsec = (long)(c->patience * 1e9)}, NULL);
	prb_case_spent(c, began);
	if (!read_periods(c, &after))
		return NULL;

	int64_t all = after.all - before.all, throttled = after.throttled - before.throttled;

	if (all <= 0 || (double)throttled * 100 < prb_limit(PRB_LIMIT_THROTTLED) * (double)all)
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_HIGH;
	prb_str_puts(&f->brief, "throttled by its control group");
	prb_str_printf(&f->sentence,
		       "its control group was throttled in %lld of the last %lld periods: it may "
		       "not use more of the processors",
		       (long long)throttled, (long long)all);
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_printf(line, "nr_throttled %lld of nr_periods %lld since the group was made",
		       (long long)after.throttled, (long long)after.all);
	put_quota(c, line);
	prb_str_puts(&f->rests_on, "two readings of cpu.stat of its control group");
	prb_str_puts(&f->wrong_if, "other processes of the group use the time, and this one needs "
				   "little");
	prb_case_put_command(&f->next, c, "perf");
	return NULL;
}

const struct prb_rule prb_rule_throttled = {
	.rank = 100,
	.name = "throttled",
	.kind = PRB_FINDING_PROCESSOR,
	.needs = PRB_RULE_PROC,
	.waits = true,
	.proves = "the control group was throttled in half of the periods",
	.find = find,
};
