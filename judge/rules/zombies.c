/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Children that have ended and that nobody reaps: each holds a pid. */
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "target/proc/pids.h"

enum { MOST_NAMED = 8 };

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	prb_auto_pids struct prb_pids zombies = {};
	struct prb_finding *f;
	struct prb_str *line;

	PRB_TRY(prb_case_zombies(c, &zombies));
	if (zombies.list.count < prb_limit(PRB_LIMIT_ZOMBIES))
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "%zu ended children", zombies.list.count);
	prb_str_printf(&f->sentence,
		       "%zu children have ended, and the process does not wait for them",
		       zombies.list.count);
	PRB_TRY(prb_finding_line(f, 0, &line));
	for (size_t i = 0; i < zombies.list.count; i++) {
		PRB_TRY(prb_finding_pid(f, zombies.list.items[i]));
		if (i < MOST_NAMED)
			prb_str_printf(line, "%s%d", i ? ", " : "zombies ",
				       (int)zombies.list.items[i]);
	}
	if (zombies.list.count > MOST_NAMED)
		prb_str_printf(line, " and %zu more", zombies.list.count - MOST_NAMED);
	prb_str_puts(&f->rests_on, "the kernel's states of its children");
	prb_str_puts(&f->wrong_if, "it reaps them later, all together");
	if (c->pid)
		prb_str_printf(&f->next, "probing list --tree");
	return NULL;
}

const struct prb_rule prb_rule_zombies = {
	.rank = 120,
	.name = "zombies",
	.kind = PRB_FINDING_CHILDREN,
	.needs = PRB_RULE_PROC,
	.proves = "16 children have ended and are not reaped",
	.find = find,
};
