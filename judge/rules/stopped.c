/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A process that a signal or a debugger has stopped. */
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/threads.h"

static void say_traced(struct prb_finding *f, int64_t tracer)
{
	prb_str_puts(&f->brief, "stopped by a debugger");
	prb_str_puts(&f->sentence, "the process is stopped by a debugger");
	if (tracer > 0)
		prb_str_printf(&f->sentence, ", process %lld", (long long)tracer);
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->wrong_if,
		     "another observer stopped it only for the moment in which it was read");
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *main = c->dump->threads.count ? c->dump->threads.items : NULL;
	bool traced = main && prb_thread_is(main, "traced");
	struct prb_finding *f;

	if (!main || (!traced && !prb_thread_is(main, "stopped")))
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	if (traced) {
		int64_t tracer = prb_case_status(c, "TracerPid");

		say_traced(f, tracer);
		if (tracer > 0)
			PRB_TRY(prb_finding_pid(f, (pid_t)tracer));
	} else {
		f->confidence = PRB_CONFIDENCE_HIGH;
		prb_str_puts(&f->brief, "stopped by a signal");
		prb_str_puts(&f->sentence,
			     "the process is stopped by a signal: SIGSTOP, or Ctrl-Z in its "
			     "terminal");
		prb_str_puts(&f->wrong_if, "somebody has continued it since");
		if (c->pid)
			prb_str_printf(&f->next, "kill -CONT %d", (int)c->pid);
	}
	PRB_TRY(prb_finding_thread(f, c, main));
	prb_str_puts(&f->rests_on, "the kernel's state of the main thread");
	return NULL;
}

const struct prb_rule prb_rule_stopped = {
	.rank = 10,
	.name = "stopped",
	.kind = PRB_FINDING_STOPPED,
	.needs = PRB_RULE_THREADS,
	.proves = "a signal or a debugger has stopped the process",
	.find = find,
};
