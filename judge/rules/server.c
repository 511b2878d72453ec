/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An inference server whose requests do not move. */
#include "base/cleanup.h"
#include "dump/dump.h"
#include "judge/facts.h"
#include "judge/glance.h"
#include "judge/server/server.h"

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	prb_auto_server_looks struct prb_server_looks looks = {};
	struct prb_server_process *const *process;
	bool is_one;

	if (!prb_case_is_here(c) || !c->target || c->no_server ||
	    (c->glances && prb_glances_judged_elsewhere(c->glances, c->pid)))
		return NULL;
	PRB_TRY(prb_engines_load(getenv("PROBING_ENGINES"), &looks.engines));
	PRB_TRY(prb_server_is_one(&looks.engines, c->target, c->found ? &c->found->pythons : NULL,
				  &is_one));
	if (!is_one)
		return NULL;
	prb_engines_deinit(&looks.engines);
	looks.engines = (struct prb_engines){};
	PRB_TRY(prb_server_looks_read(&looks, c->pid, PRB_DUMP_NONBLOCKING));
	/* A server of many processes is judged once. */
	prb_vec_each (process, &looks.now.processes)
		if (c->glances && !prb_glances_judged_elsewhere(c->glances, (*process)->pid))
			PRB_TRY(prb_glances_note_server(c->glances, (*process)->pid, c->pid));
	return prb_server_judge(rule, c, &looks, ret);
}

const struct prb_rule prb_rule_server = {
	.rank = 24,
	.name = "server",
	.kind = PRB_FINDING_SERVER,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.proves = "requests of an inference server do not move, and what keeps them",
	.find = find,
};
