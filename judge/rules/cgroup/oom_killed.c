/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The OOM killer has killed processes of the control group. When is not known. */
#include "base/cleanup.h"
#include "judge/facts.h"

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_finding *f;
	struct prb_str *line;
	int64_t killed;

	if (!prb_case_group(c, "memory", "memory.events", "memory.oom_control", &text))
		return NULL;
	killed = prb_group_number(prb_str_text(&text), "oom_kill");
	if (killed <= 0)
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_LOW;
	prb_str_puts(&f->brief, "the OOM killer was here");
	prb_str_printf(&f->sentence,
		       "the OOM killer has killed %lld process%s of its control group since the "
		       "group was made",
		       (long long)killed, killed == 1 ? "" : "es");
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_printf(line, "oom_kill %lld", (long long)killed);
	prb_str_puts(&f->rests_on, "memory.events or memory.oom_control of its control group; "
				   "when it was is not known");
	prb_str_puts(&f->wrong_if, "that was long ago, or the process needs none of them");
	prb_str_puts(&f->next, "dmesg --ctime | grep -i 'killed process'");
	return NULL;
}

const struct prb_rule prb_rule_oom_killed = {
	.rank = 110,
	.name = "oom_killed",
	.kind = PRB_FINDING_MEMORY,
	.needs = PRB_RULE_PROC,
	.proves = "the OOM killer has killed processes of the control group",
	.find = find,
};
