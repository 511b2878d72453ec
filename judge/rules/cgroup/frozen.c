/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control group of the process is frozen: nothing in it runs. */
#include "base/cleanup.h"
#include "judge/facts.h"

static bool is_first_version(struct prb_case *c)
{
	prb_auto_str struct prb_str text = {};

	return prb_case_group(c, "freezer", "cgroup.events", "freezer.state", &text) &&
	       prb_group_number(prb_str_text(&text), "frozen") < 0;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	struct prb_finding *f;
	struct prb_str *line;

	if (!prb_case_is_frozen(c))
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_HIGH;
	prb_str_puts(&f->brief, "its control group is frozen");
	prb_str_puts(&f->sentence, "its control group is frozen: no process in it runs");
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_puts(line, is_first_version(c) ? "freezer.state is FROZEN"
					       : "cgroup.events has frozen 1");
	prb_str_puts(&f->rests_on, "the control group that /proc/PID/cgroup names");
	prb_str_puts(&f->wrong_if, "somebody has thawed it since");
	if (c->pid)
		prb_str_printf(&f->next, "cat /proc/%d/cgroup", (int)c->pid);
	return NULL;
}

const struct prb_rule prb_rule_frozen = {
	.rank = 12,
	.name = "frozen",
	.kind = PRB_FINDING_STOPPED,
	.needs = PRB_RULE_PROC,
	.proves = "the control group is frozen",
	.find = find,
};
