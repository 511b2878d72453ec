/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that no signal reaches: they sleep in the kernel until a disk or a device answers. */
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"

static bool is_stuck(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	return prb_thread_is(thread, "uninterruptible") &&
	       !prb_case_moved(c, thread, prb_limit(PRB_LIMIT_WAIT));
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	struct prb_finding *f = NULL;

	prb_vec_each (thread, &c->dump->threads) {
		if (!is_stuck(c, thread))
			continue;
		/* So do the threads of a frozen control group. */
		if (!f && prb_case_is_frozen(c))
			return NULL;
		if (!f) {
			PRB_TRY(prb_finding_add(rule, ret, &f));
			prb_str_puts(&f->sentence, "thread ");
			prb_case_put_thread(&f->sentence, thread);
			prb_str_puts(&f->sentence, " waits in the kernel for a disk or device, ");
			prb_case_put_doing(&f->sentence, c, thread);
		}
		PRB_TRY(prb_finding_thread(f, c, thread));
	}
	if (!f)
		return NULL;
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "waits for a disk or device");
	prb_str_puts(&f->rests_on, "the kernel's states of ");
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->wrong_if, "the device answers in a moment: look again");
	if (c->pid)
		prb_str_printf(&f->next, "cat /proc/%d/task/%d/stack", (int)c->pid,
			       (int)f->tids.items[0]);
	return NULL;
}

const struct prb_rule prb_rule_device = {
	.rank = 40,
	.name = "device",
	.kind = PRB_FINDING_DEVICE,
	.needs = PRB_RULE_THREADS,
	.proves = "a thread waits for a disk or a device",
	.find = find,
};
