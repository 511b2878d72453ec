/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The GIL is held by a thread that sleeps: no other thread can run Python code. */
#include "base/cleanup.h"
#include "judge/judge.h"
#include "judge/limits.h"
#include "judge/threads.h"

static unsigned gil_waiters(const struct prb_case *c)
{
	const struct prb_dump_thread *thread;
	unsigned count = 0;

	prb_vec_each (thread, &c->dump->threads)
		count += prb_thread_waits_for_gil(thread);
	return count;
}

static const struct prb_dump_thread *holder_of(const struct prb_case *c)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &c->dump->threads)
		if (prb_thread_holds_gil(thread) && !prb_thread_is(thread, "running") &&
		    !prb_thread_is(thread, "stopped") && !prb_thread_is(thread, "traced") &&
		    prb_case_idle(c, thread) > prb_limit(PRB_LIMIT_WAIT))
			return thread;
	return NULL;
}

/* That is a pause, or code that somebody evaluates. */
static void tell_pause(struct prb_finding *f, const struct prb_case *c,
		       const struct prb_dump_thread *holder)
{
	f->kind = PRB_FINDING_STOPPED;
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "paused by probing");
	prb_str_puts(&f->sentence,
		     "the process is paused by probing, or evaluates code for it: thread ");
	prb_case_put_thread(&f->sentence, holder);
	prb_str_puts(&f->sentence, " of its agent holds the GIL");
	prb_str_puts(&f->rests_on,
		     "the fields of the GIL, and the name of the thread that holds it");
	prb_str_puts(&f->wrong_if,
		     "the pause has ended, or the program gives its threads such names");
	prb_case_put_command(&f->next, c, "agent status");
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *holder = holder_of(c), *thread;
	unsigned waiters = gil_waiters(c);
	struct prb_finding *f;

	if (!holder)
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	if (prb_thread_is_agents(holder)) {
		tell_pause(f, c, holder);
		return prb_finding_thread(f, c, holder);
	}
	/* A program that embeds Python may hold the GIL where it waits for work. */
	f->confidence = waiters ? PRB_CONFIDENCE_HIGH : PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "GIL held by a sleeping thread");
	prb_str_puts(&f->sentence, "thread ");
	prb_case_put_thread(&f->sentence, holder);
	prb_str_puts(&f->sentence, " holds the GIL and sleeps, ");
	prb_case_put_doing(&f->sentence, c, holder);
	if (waiters)
		prb_str_printf(&f->sentence, "; %u thread%s for it", waiters,
			       waiters == 1 ? " waits" : "s wait");
	PRB_TRY(prb_finding_thread(f, c, holder));
	prb_vec_each (thread, &c->dump->threads)
		if (prb_thread_waits_for_gil(thread) && f->evidence.count < 8)
			PRB_TRY(prb_finding_thread(f, c, thread));
	prb_str_puts(&f->rests_on, "the fields of the GIL, and ");
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->wrong_if, waiters ? "the thread wakes up in a moment: look again"
					   : "no other thread needs the GIL meanwhile");
	prb_case_put_command(&f->next, c, "dump --native");
	return NULL;
}

const struct prb_rule prb_rule_gil_sleeps = {
	.rank = 50,
	.name = "gil_sleeps",
	.kind = PRB_FINDING_GIL,
	.needs = PRB_RULE_THREADS,
	.proves = "the GIL holder has slept for over a second",
	.find = find,
};
