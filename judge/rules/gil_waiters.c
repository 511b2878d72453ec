/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Many threads want to run Python code at one instant. */
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread, *holder = NULL;
	struct prb_finding *f;
	unsigned waiters = 0;
	bool overloaded;

	prb_vec_each (thread, &c->dump->threads) {
		waiters += prb_thread_waits_for_gil(thread);
		if (prb_thread_holds_gil(thread))
			holder = thread;
	}
	/* The rule `gil_sleeps` reports the agent's thread; `gil_held` reports one that holds it
	 * long. */
	if (waiters < prb_limit(PRB_LIMIT_GIL_WAITERS) ||
	    (holder && prb_thread_is_agents(holder)) || prb_findings_have(ret, "gil_held"))
		return NULL;
	/* A holder that waits for a processor keeps all others waiting. */
	overloaded = prb_case_is_here(c) && prb_machine_is_overloaded();
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = overloaded ? PRB_CONFIDENCE_LOW : PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "%u threads wait for the GIL", waiters);
	prb_str_puts(&f->sentence, prb_str_text(&f->brief));
	if (holder) {
		prb_str_puts(&f->sentence, ", which ");
		prb_case_put_thread(&f->sentence, holder);
		prb_str_puts(&f->sentence, " holds, ");
		prb_case_put_doing(&f->sentence, c, holder);
		PRB_TRY(prb_finding_thread(f, c, holder));
	}
	prb_vec_each (thread, &c->dump->threads)
		if (prb_thread_waits_for_gil(thread) && f->evidence.count < 8)
			PRB_TRY(prb_finding_thread(f, c, thread));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, ": one look");
	prb_str_puts(&f->wrong_if, "the next look finds few waiters");
	if (overloaded) {
		prb_str_puts(&f->wrong_if, ", or the holder only waits for a processor: ");
		prb_machine_put_load(&f->wrong_if);
	}
	prb_case_put_command(&f->next, c, "perf --mode gil");
	return NULL;
}

const struct prb_rule prb_rule_gil_waiters = {
	.rank = 60,
	.name = "gil_waiters",
	.kind = PRB_FINDING_GIL,
	.needs = PRB_RULE_THREADS,
	.proves = "four threads wait for the GIL",
	.find = find,
};
