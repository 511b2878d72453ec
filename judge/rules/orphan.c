/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A lock whose owner is no thread of this process: it has ended, or held it when this was forked.
 */
#include <string.h>

#include "base/cleanup.h"
#include "judge/judge.h"
#include "judge/threads.h"

static bool is_orphaned(const struct prb_dump_thread *thread)
{
	return prb_thread_waits_inside(thread) &&
	       strstr(thread->waits_for, " that no thread of this process holds");
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	struct prb_finding *f = NULL;

	prb_vec_each (thread, &c->dump->threads) {
		if (!is_orphaned(thread))
			continue;
		if (!f) {
			PRB_TRY(prb_finding_add(rule, ret, &f));
			prb_str_puts(&f->brief, "waits for a lock of no thread");
			prb_str_puts(&f->sentence, "thread ");
			prb_case_put_thread(&f->sentence, thread);
			prb_str_puts(&f->sentence, " waits for a lock whose owner is no thread of "
						   "this process, ");
			prb_case_put_doing(&f->sentence, c, thread);
			f->proof = true;
		}
		f->proof = f->proof && prb_case_waits_without_limit(c, thread);
		PRB_TRY(prb_finding_thread(f, c, thread));
	}
	if (!f)
		return NULL;
	f->confidence = PRB_CONFIDENCE_HIGH;
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, ", and the owner that the lock names");
	prb_str_puts(&f->wrong_if, "the owner ended in the moment in which it was read");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

const struct prb_rule prb_rule_orphan = {
	.rank = 25,
	.name = "orphan",
	.kind = PRB_FINDING_ORPHAN,
	.needs = PRB_RULE_THREADS,
	.proves = "a lock's owner is no thread of the process: it has ended, or held it at a fork",
	.find = find,
};
