/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory near the limit of the control group: the OOM killer is near. */
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/facts.h"
#include "judge/judge.h"
#include "judge/limits.h"

/** Bytes of files that the kernel can take back, of the process's own group. */
static int64_t reclaimable(struct prb_case *c)
{
	prb_auto_str struct prb_str text = {};
	int64_t bytes;

	if (!prb_case_group(c, "memory", "memory.stat", "memory.stat", &text))
		return 0;
	bytes = prb_group_number(prb_str_text(&text), "total_inactive_file");
	if (bytes < 0)
		bytes = prb_group_number(prb_str_text(&text), "inactive_file");
	return bytes < 0 ? 0 : bytes;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_case_memory *memory = prb_case_memory(c);
	struct prb_finding *f;
	struct prb_str *line;
	int64_t files;
	double used = memory->limit > 0 ? (double)memory->limit_used / (double)memory->limit : 0;

	if (used * 100 < prb_limit(PRB_LIMIT_MEMORY))
		return NULL;
	/* The cache of files is used memory, too. It is asked for only now. */
	files = reclaimable(c);
	used = (double)(memory->limit_used - files) / (double)memory->limit;
	if (used * 100 < prb_limit(PRB_LIMIT_MEMORY))
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "memory at %.0f %% of its group's limit", used * 100);
	prb_str_printf(&f->sentence, "the process's control group uses %.0f %% of its memory limit",
		       used * 100);
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_text_bytes(line, (double)memory->limit_used);
	prb_str_puts(line, " of ");
	prb_text_bytes(line, (double)memory->limit);
	if (files > 0) {
		prb_str_puts(line, ", of which ");
		prb_text_bytes(line, (double)files);
		prb_str_puts(line, " are cached files that the kernel can drop");
	}
	prb_str_puts(&f->rests_on, "files of the control group with the least room");
	prb_str_puts(&f->wrong_if, "more of it is cached files, or belongs to other processes of "
				   "the group");
	if (c->pid)
		prb_str_printf(&f->next, "probing -t %d memory", (int)c->pid);
	return NULL;
}

const struct prb_rule prb_rule_memory_limit = {
	.rank = 80,
	.name = "memory_limit",
	.kind = PRB_FINDING_MEMORY,
	.needs = PRB_RULE_MEMORY,
	.proves = "the control group uses over 90 % of its memory",
	.find = find,
};
