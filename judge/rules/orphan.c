/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A lock whose owner is no thread of this process: it has ended, or held it when this was forked.
 * Of a plain lock, which names no owner, that is known if the process has one thread alone.
 */
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/judge.h"
#include "judge/threads.h"

/* Shorter waits may be those of a moment. */
static const double SURELY = 1;

/* The only thread waits for what threads of this process alone could release: a fork left it. */
static bool is_alone(struct prb_case *c, const struct prb_dump_thread *thread)
{
	struct prb_futex_call call;

	if (thread->wants == PRB_WANTS_NOTHING || c->dump->threads.count != 1 ||
	    prb_case_status(c, "Threads") != 1 || prb_case_idle(c, thread) < SURELY)
		return false;
	call = prb_case_futex_call(c, thread);
	return call.own && call.endless && !prb_case_handles_signals(c);
}

static bool is_orphaned(struct prb_case *c, const struct prb_dump_thread *thread)
{
	return prb_thread_waits_inside(thread) && (thread->orphaned || is_alone(c, thread));
}

static void begin(struct prb_finding *f, const struct prb_case *c,
		  const struct prb_dump_thread *thread)
{
	prb_str_puts(&f->brief, "waits for a lock of no thread");
	prb_str_puts(&f->sentence, thread->orphaned ? "thread " : "the only thread ");
	prb_case_put_thread(&f->sentence, thread);
	prb_str_puts(&f->sentence,
		     thread->orphaned
			     ? " waits for a lock whose owner is no thread of this process, "
			     : " waits for a lock or semaphore that no other thread can release, ");
	prb_case_put_doing(&f->sentence, c, thread);
	f->proof = true;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	struct prb_finding *f = NULL;

	prb_vec_each (thread, &c->dump->threads) {
		if (!is_orphaned(c, thread))
			continue;
		if (!f) {
			PRB_TRY(prb_finding_add(rule, ret, &f));
			begin(f, c, thread);
		}
		f->proof = f->proof && prb_case_waits_without_limit(c, thread);
		PRB_TRY(prb_finding_thread(f, c, thread));
	}
	if (!f)
		return NULL;
	f->confidence = PRB_CONFIDENCE_HIGH;
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, ", and the owner that the lock names, if any");
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
