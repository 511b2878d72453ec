/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Much of the process is swapped out. */
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/judge.h"
#include "judge/limits.h"

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_case_memory *memory = prb_case_memory(c);
	struct prb_finding *f;
	struct prb_str *line;

	if ((double)memory->swap <= prb_limit(PRB_LIMIT_SWAPPED) * (1 << 20))
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "%lld MB swapped out", (long long)(memory->swap >> 20));
	prb_str_printf(&f->sentence,
		       "%lld MB of the process are swapped out: it is slow wherever it uses them",
		       (long long)(memory->swap >> 20));
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_printf(line, "VmSwap %lld kB", (long long)(memory->swap >> 10));
	prb_str_puts(&f->rests_on, "VmSwap in /proc/PID/status");
	prb_str_puts(&f->wrong_if, "the program does not use that part");
	if (c->pid)
		prb_str_printf(&f->next, "probing -t %d memory", (int)c->pid);
	return NULL;
}

const struct prb_rule prb_rule_swapped = {
	.rank = 90,
	.name = "swapped",
	.kind = PRB_FINDING_MEMORY,
	.needs = PRB_RULE_MEMORY,
	.proves = "over 100 MB are swapped out",
	.find = find,
};
